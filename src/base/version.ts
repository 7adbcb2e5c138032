/** The version that records carry; a test holds it to package.json. */
export const AERIE_VERSION = '0.1.0';
