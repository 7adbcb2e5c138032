/** Options of the commands that take few. */
import { refusal } from './run-options.mjs';

/** `-s X`, `--signal X`, `--signal=X` → value; what is left are the containers. */
export function options(words, values, switches = []) {
  const found = { names: [] };
  for (let at = 0; at < words.length; at += 1) {
    const [, name, , value] = /^--?([\w-]+)(=(.*))?$/s.exec(words[at]) ?? [];
    if (name === undefined) found.names.push(words[at]);
    else if (name in values) {
      if (value === undefined) at += 1;
      found[values[name]] = [...(found[values[name]] ?? []), value ?? words[at]];
    } else if (switches.includes(name)) found[name] = true;
    else if (/^[a-z]{2,}$/.test(name) && [...name].every((letter) => switches.includes(letter)))
      for (const letter of name) found[letter] = true;
    else throw refusal(`unknown flag: ${words[at]}`);
  }
  return found;
}
