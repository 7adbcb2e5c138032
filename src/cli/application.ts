/** The table of commands. Loads nothing but stricli, so that `aerie --help` is fast; a test holds it to that. */
import { buildApplication, buildRouteMap } from '@stricli/core';
import { AERIE_VERSION } from '../base/version.ts';
import { checkCommand, exportCommand } from './routes/delivery.ts';
import { previewCommand, rehearseCommand, runCommand, statusCommand, stopCommand } from './routes/generation.ts';
import { doctorCommand, explainCommand, initCommand } from './routes/help.ts';
import { policyRoutes } from './routes/policy.ts';
import { serverCommands } from './routes/server.ts';
import { diagnoseCommand, planCommand, probeCommand } from './routes/servers.ts';

const commands = {
  run: runCommand,
  preview: previewCommand,
  rehearse: rehearseCommand,
  status: statusCommand,
  stop: stopCommand,
  check: checkCommand,
  export: exportCommand,
  init: initCommand,
  policy: policyRoutes,
  plan: planCommand,
  doctor: doctorCommand,
  probe: probeCommand,
  diagnose: diagnoseCommand,
  server: serverCommands,
  explain: explainCommand,
};

export function isCommand(name: string): boolean {
  return Object.hasOwn(commands, name);
}

const routes = buildRouteMap({
  routes: commands,
  docs: {
    brief: 'Training data for EAGLE-3 drafters: prompts in, exact records out',
    fullDescription:
      'Training data for EAGLE-3 drafters: prompts in, exact records out, safe under kill -9.\n' +
      'Exit codes: 0 yes · 1 no · 2 usage or file · 3 environment · 4 engine · 5 stopped early, resumable · 70 bug · 130/143 interrupted.',
  },
});

export const application = buildApplication(routes, {
  name: 'aerie',
  versionInfo: { currentVersion: AERIE_VERSION },
  scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
});
