import { describeLedger } from '../../../test/contracts/ledger.ts';
import { openSqliteLedger } from './open-ledger.ts';

describeLedger('SQLite', openSqliteLedger);
