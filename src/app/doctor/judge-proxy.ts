/** Which way requests to a server take. Pure. */
import type { ProxyChoice } from '../../host/proxy-for.ts';
import { type DoctorCheck, fails, ok } from './finding.ts';

/** Nothing is said of a server that is asked directly. */
export function judgeProxy(server: string, address: string, choice: ProxyChoice): DoctorCheck[] {
  switch (choice.kind) {
    case 'direct':
      return [];
    case 'proxy': {
      const { name, variable } = choice.proxy;
      return [ok('proxy', `${server} (${address}) is asked through ${name}, as ${variable} says`, { server, proxy: name })];
    }
    case 'wrong':
      return [
        fails(
          'proxy',
          `${server} (${address}) cannot be asked: ${choice.because}`,
          'Correct it, or write the host into NO_PROXY.',
        ),
      ];
  }
}
