/**
 * journalctl and systemctl of one file, for machines where systemd does not run: `AERIE_FAKE_JOURNAL=FILE node fake-journal.mjs journalctl …`.
 * Each line of FILE is an entry as `journalctl --output=json` prints it; what it understands are the options that Aerie gives.
 */
import { readFileSync } from 'node:fs';

const [program, ...words] = process.argv.slice(2);
const value = (name) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
const entries = readFileSync(process.env['AERIE_FAKE_JOURNAL'] ?? '', 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line));

if (program === 'systemctl') {
  const unit = words.at(-1);
  process.stdout.write(`${entries.findLast((entry) => entry._SYSTEMD_UNIT === unit)?._SYSTEMD_INVOCATION_ID ?? ''}\n`);
} else {
  const [unit, invocation] = [value('--unit') ?? value('--user-unit'), value('_SYSTEMD_INVOCATION_ID')];
  const after = value('--after-cursor');
  const from = after === undefined ? 0 : entries.findIndex((entry) => entry.__CURSOR === after) + 1;
  const found = entries
    .slice(from)
    .filter((entry) => unit === undefined || entry._SYSTEMD_UNIT === unit)
    .filter((entry) => invocation === undefined || entry._SYSTEMD_INVOCATION_ID === invocation);
  const lines = value('--lines') === undefined ? found : found.slice(-Number(value('--lines')));
  const show = ({ __CURSOR, MESSAGE }) => (value('--output') === 'json' ? JSON.stringify({ __CURSOR, MESSAGE }) : MESSAGE);
  for (const entry of lines) process.stdout.write(`${show(entry)}\n`);
}
