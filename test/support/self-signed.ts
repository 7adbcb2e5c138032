/**
 * A certificate that nobody else knows, made on the spot: X.509 v3 for a host name and 127.0.0.1, signed by its own key.
 * Written out in DER by hand, because Node makes keys and no certificates; just what TLS between two Nodes needs.
 */
import { createSign, generateKeyPairSync, randomBytes } from 'node:crypto';

export interface SelfSigned {
  readonly key: string;
  readonly cert: string;
}

const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const UTF8 = 0x0c;
const UTC_TIME = 0x17;

function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = body.length;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), body]);
  const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), body]);
}

const hex = (text: string) => Buffer.from(text, 'hex');
const ECDSA_SHA256 = der(SEQUENCE, hex('06082a8648ce3d040302'));
const COMMON_NAME = hex('0603550403');
const ALT_NAME = hex('0603551d11');
const BASIC_CONSTRAINTS = hex('0603551d13');

/** Valid for any moment of this century, so that no test ends with it. */
export function makeSelfSigned(host = 'localhost'): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, Buffer.from(host)))));
  const time = (text: string) => der(UTC_TIME, Buffer.from(text));
  const altNames = der(
    SEQUENCE,
    der(0x82, Buffer.from(host)),
    ...(host === 'localhost' ? [der(0x87, Buffer.from([127, 0, 0, 1]))] : []),
  );
  const extensions = der(
    SEQUENCE,
    der(SEQUENCE, ALT_NAME, der(OCTET_STRING, altNames)),
    der(SEQUENCE, BASIC_CONSTRAINTS, der(OCTET_STRING, der(SEQUENCE, hex('0101ff')))),
  );
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    name,
    der(SEQUENCE, time('200101000000Z'), time('491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = createSign('sha256').update(body).sign(privateKey);
  const certificate = der(SEQUENCE, body, ECDSA_SHA256, der(BIT_STRING, Buffer.from([0]), signature));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}
