/**
 * Who belongs to a launch. Pure: a table of processes in, members out. A process belongs when it carries the marker in its
 * environment, or lives in the session of one that does and leads it, or descends from one that belongs. Three signs, because each
 * can be lost: a program that retitles itself overwrites its environment, one that makes itself a daemon leaves its
 * session, and an orphan has lost its parent.
 */
export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** 0: its leader is outside this pid namespace, as of all that a container or sandbox was entered with. */
  readonly session: number;
  readonly startTicks: number;
  readonly carriesMarker: boolean;
  /** A zombie: its environment is gone, its session is not. */
  readonly hasEnded: boolean;
}

/** `main`: the pid of the launch's program, where it is still that program. The first started first. */
export function findFamily<Row extends ProcessRow>(rows: readonly Row[], main: number | undefined): Row[] {
  const byPid = new Map(rows.map((row) => [row.pid, row]));
  const seeds = rows.filter((row) => row.carriesMarker || row.pid === main);
  // Each launch is started in a session of its own, so who carries the marker is in that one or in one made below it. One whose
  // leader lives and does not carry it is somebody's terminal, and 0 is no session: those who show it have nothing in common.
  const ofSeeds = seeds.map(({ session }) => session).filter((session) => session !== 0);
  const sessions = new Set(
    ofSeeds.filter((session) => {
      const leader = byPid.get(session);
      return leader === undefined || leader.hasEnded || leader.carriesMarker;
    }),
  );
  const family = new Set([...seeds, ...rows.filter(({ session }) => sessions.has(session))]);
  let before = 0;
  while (family.size > before) {
    before = family.size;
    for (const row of rows) {
      const parent = byPid.get(row.parent);
      // A pid may have been given anew since: nobody is older than the one it descends from.
      if (parent !== undefined && family.has(parent) && parent.startTicks <= row.startTicks) family.add(row);
    }
  }
  return [...family].sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid);
}
