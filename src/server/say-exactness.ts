/** What a server that is ready will give, before anything is asked of it: as facts of `server.ready`. Pure. */
import type { Facts } from '../base/events.ts';
import { NO_TEMPLATE } from '../base/prompt-template.ts';
import type { Endpoint } from './endpoint.ts';

/** Whether its records will be exact, and how or why not; apart for prompts with tools, where that differs. */
export function sayExactness({
  dialect,
  facts,
  template = NO_TEMPLATE,
}: Pick<Endpoint, 'dialect' | 'facts' | 'template'>): Facts {
  const of = (hasTools: boolean) => dialect.exactness(facts, { template, hasTools, extraBody: {} });
  const { exact, how, because } = of(false);
  const withTools = of(true).because;
  return {
    ids: how,
    ...(exact ? {} : { inexactBecause: because }),
    ...(withTools === because ? {} : { inexactWithTools: withTools }),
  };
}
