/** Where a launched engine listens and is asked: nobody from outside reaches it. */
export const LOOPBACK = '127.0.0.1';
