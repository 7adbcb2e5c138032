/** What is seen before a server is started: each no says what is in the way and what to do, and starts nothing. Secrets stay secret. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { freemem } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import type { CliResult } from '../../support/cli.ts';
import { expectEndsWell } from '../../support/ends-well.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { launchProject, STORY_FLAGS } from '../../support/launch-project.ts';
import { isAlive } from '../../support/launch-witness.ts';
import { filesBelow } from '../../support/run-folder.ts';

function expectRefused(result: CliResult, code: string, says: RegExp): void {
  expect(expectEndsWell(result, says.source)).toBe(code);
  expect(result.stderr).toMatch(says);
  expect(result.stderr).toContain('Nothing was started.');
}

export function describePreflight(where: Where): void {
  describeAt(where, 'before a launch', () => {
    test('what is in the way of a launch is named before anything is started', async () => {
      const project = await launchProject({ where, prompts: 2 });
      const start = () => project.aerie('server', 'start', 'run.yaml');

      const other = createServer();
      onTestFinished(() => void other.close());
      await new Promise<void>((resolve) => other.listen(project.port, '127.0.0.1', resolve));
      expectRefused(
        await start(),
        'server.not-launched',
        new RegExp(`port ${project.port} \\(HTTP\\) is held by pid ${process.pid} `),
      );
      await new Promise((resolve) => other.close(resolve));

      // Setup lines are bash's, as in the launch: another shell would end here, and the launcher would not be asked for its flags.
      project.change({ flags: { ...STORY_FLAGS, 'max-runing-requests': 64 }, server: { setup: ['[[ -n here ]] || exit 3'] } });
      expectRefused(
        await start(),
        'server.not-launched',
        /--max-runing-requests is no flag .*did you mean --max-running-requests\?/,
      );

      project.change({ flags: STORY_FLAGS, server: {}, run: { model: project.path('models/none') } });
      expectRefused(
        await start(),
        'server.not-launched',
        new RegExp(`s was not launched${project.place.on}: there is no \\S+/models/none that this user can see`),
      );

      project.change({
        run: {},
        server: { log: where === 'here' ? 'run.yaml/server.log' : project.path('run.yaml/server.log') },
      });
      expectRefused(await start(), 'server.not-launched', /run\.yaml\/server\.log/);

      project.change({ server: { env: { HF_TOKEN: '$AERIE_TEST_SECRET' } } });
      expectRefused(await start(), 'secret.missing', /AERIE_TEST_SECRET.*is not set/);

      expect(existsSync(project.path('runs/r/servers/s.json'))).toBe(false);
      project.change({ server: { setup: ['echo about to fail', 'no-such-program --activate'] } });
      const failed = await start();
      expect(expectEndsWell(failed, 'setup')).toBe('server.did-not-start');
      expect(failed.stderr).toContain('Setup line 2 ended with exit status 127: no-such-program --activate');
      expect(failed.stderr).toContain('about to fail');
      expect(failed.stderr).toContain('The command of the server was not run.');
    });

    test('a secret reaches the server, and nothing that Aerie writes or says; warnings do not stop a launch', async () => {
      const secret = 'hf_cQ7zTn3kVexample0secret9Lm';
      const project = await launchProject({
        where,
        prompts: 4,
        server: { env: { HF_TOKEN: '$AERIE_TEST_SECRET', NCCL_DEBUG: 'WARN' }, setup: ['export SEEN_IN_SETUP=yes'] },
        secrets: { AERIE_TEST_SECRET: secret },
      });
      const outputs = [await project.aerie('run', 'run.yaml')];
      expect(outputs[0]?.code).toBe(0);
      // A machine that keeps 555 GiB of weights in its page cache has nothing to warn of.
      if (freemem() < 500 * 2 ** 30) expect(outputs[0]?.stderr).toContain('do not stay in the page cache');
      const pid = project.book().current?.identity?.pid ?? 0;
      expect(isAlive(pid)).toBe(true);
      const environ = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      expect(environ).toContain(`HF_TOKEN=${secret}`);
      expect(environ).toContain('SEEN_IN_SETUP=yes');
      for (const command of [['status'], ['server', 'verify'], ['server', 'start'], ['server', 'logs'], ['server', 'stop']])
        for (const json of where === 'here' ? [[], ['--json']] : [[]])
          outputs.push(await project.aerie(...command, 'run.yaml', ...json));
      for (const { stdout, stderr } of outputs) expect(`${stdout}${stderr}`).not.toContain(secret);
      const files = filesBelow(project.folder);
      expect(files.filter((file) => /\.(sqlite|json|log|html)$/.test(file)).length).toBeGreaterThan(5);
      for (const file of files) expect(readFileSync(file).includes(secret), file).toBe(false);
    });
  });
}
