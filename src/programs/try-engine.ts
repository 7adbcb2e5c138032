/**
 * For `aerie doctor`: loads node-llama-cpp and its binary for this machine as the embedded engine does, in a process of its own,
 * because a wrong binary can end the process. stdout: the version. Exit 3 with the reason on stderr where it does not load.
 */
async function main(): Promise<void> {
  const { getLlama, getModuleVersion } = await import('node-llama-cpp');
  const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, progressLogs: false, logger: () => undefined });
  process.stdout.write(`${await getModuleVersion()}\n`);
  await llama.dispose();
}

main().catch((thrown: unknown) => {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  process.stderr.write(`${text.replace(/\s+/g, ' ')}\n`);
  process.exitCode = 3;
});
