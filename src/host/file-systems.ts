/**
 * Which file system holds a path, and whether it is on a network. Pure: the text of /proc/self/mountinfo (Linux) or of
 * `mount` (macOS) in, a value out. A network file system is refused for run folders, because locks and fsync there are
 * not what they say.
 */
export interface Mount {
  /** Mount point. */
  readonly at: string;
  /** As the system names it: `ext4`, `nfs4`, `fuse.sshfs` … */
  readonly type: string;
  /** What is mounted: a device, `server:/export` … */
  readonly source: string;
}

/** Type → what it is, for people. Names as the kernels and FUSE programs give them. */
const NETWORK: Readonly<Record<string, string>> = {
  ...{ nfs: 'NFS', nfs4: 'NFS', cifs: 'SMB', smb3: 'SMB', smbfs: 'SMB', smb2: 'SMB', afs: 'AFS', openafs: 'AFS' },
  ...{ '9p': 'the 9P protocol', afpfs: 'AFP', ncpfs: 'NCP', ncp: 'NCP', coda: 'Coda', davfs: 'WebDAV', webdav: 'WebDAV' },
  ...{ ceph: 'Ceph', 'fuse.ceph': 'Ceph', 'fuse.ceph-fuse': 'Ceph', lustre: 'Lustre', gpfs: 'GPFS', beegfs: 'BeeGFS' },
  ...{ glusterfs: 'Gluster', 'fuse.glusterfs': 'Gluster', pvfs2: 'OrangeFS', orangefs: 'OrangeFS', wekafs: 'Weka' },
  ...{ 'fuse.sshfs': 'SSH', 'fuse.s3fs': 'an object store', 'fuse.goofys': 'an object store', 'fuse.gcsfuse': 'an object store' },
  ...{ 'fuse.mount-s3': 'an object store', 'fuse.blobfuse': 'an object store', 'fuse.blobfuse2': 'an object store' },
  ...{ 'fuse.rclone': 'a cloud store', 'fuse.juicefs': 'JuiceFS', 'fuse.davfs2': 'WebDAV', 'fuse.curlftpfs': 'FTP' },
};

/** `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw`: proc(5); optional fields end at the lone dash. */
export function parseMountInfo(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const at = before.split(' ')[4];
    const [type = '', source = ''] = after.split(' ');
    return at === undefined || type === '' ? [] : [{ at: unescapeOctal(at), type, source: unescapeOctal(source) }];
  });
}

/** macOS: `//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)`. */
export function parseMountCommand(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const match = /^(.*) on (\/.*) \(([^,)]+)[^)]*\)$/.exec(line);
    return match === null ? [] : [{ source: match[1] ?? '', at: match[2] ?? '', type: (match[3] ?? '').trim() }];
  });
}

/** The mount that holds an absolute path without links: the longest mount point above it, the latest where one hides another. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const isAbove = mount.at === '/' || path === mount.at || path.startsWith(`${mount.at}/`);
    if (isAbove && mount.at.length >= (best?.at.length ?? 0)) best = mount;
  }
  return best;
}

/** What network lies behind it, or undefined where it is a disk of this machine as far as its type says. */
export function networkBehind({ type, at }: Mount): string | undefined {
  // A sandbox (gVisor, Kata) shows its own root as 9p; there is no other disk to send people to.
  if (type === '9p' && at === '/') return undefined;
  return Object.hasOwn(NETWORK, type) ? NETWORK[type] : undefined;
}

/** Spaces, tabs and backslashes are written in octal. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
