/**
 * The HTTP surface. Only the status code of /health counts (503 while the model loads, 200 when it can answer), its body is
 * empty. Every refusal has vLLM's error shape; a fault inside is a 500 without a stack trace, and the log has the reason.
 */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { answerChat, answerCompletion, answerGenerate, refuseOtherModel } from './answers.ts';
import { describeMetrics, describeModels, describeServer, describeTokenizer } from './descriptions.ts';
import type { LoadedModel } from './model.ts';
import { refuseUnknownIds, tokenizeChat, tokenizeText } from './prompt.ts';
import { BODIES, errorBody, parseBody, Refusal, type TokenizeBody } from './wire.ts';

/** 64 MiB: far above any prompt that fits a context, far below what would hurt the process. */
const BODY_BYTES = 64 * 2 ** 20;

export interface HttpAppParts {
  /** The model once it can answer, undefined while it loads. */
  readonly model: () => LoadedModel | undefined;
  readonly now: () => number;
  readonly log: (line: string) => void;
}

export function createHttpApp({ model: loaded, now, log }: HttpAppParts): Hono {
  const app = new Hono();
  const ready = (): LoadedModel => {
    const model = loaded();
    if (model === undefined) throw new Refusal(503, 'The model is being loaded; /health answers 200 when it can be used');
    return model;
  };

  app.use(
    bodyLimit({
      maxSize: BODY_BYTES,
      onError: () => {
        throw new Refusal(413, `The body is larger than ${BODY_BYTES} bytes`);
      },
    }),
  );
  app.get('/health', (context) => context.body(null, loaded() === undefined ? 503 : 200));
  app.get('/v1/models', (context) => context.json(describeModels(ready(), now())));
  app.get('/version', (context) => context.json({ version: ready().version }));
  app.get('/metrics', (context) => context.text(describeMetrics(ready())));
  app.get('/server_info', (context) => context.json(describeServer(ready())));
  app.get('/tokenizer', (context) => context.json(describeTokenizer(ready())));

  // A body is read before anything is refused: a connection closed on a client that still sends looks like a dead server.
  app.post('/v1/chat/completions', async (context) => {
    const body = parseBody(BODIES.chat, await context.req.text());
    const model = ready();
    return context.json(await answerChat(model, body, now(), context.req.raw.signal));
  });
  app.post('/v1/completions', async (context) => {
    const body = parseBody(BODIES.completion, await context.req.text());
    const model = ready();
    return context.json(await answerCompletion(model, body, now(), context.req.raw.signal));
  });
  app.post('/generate', async (context) => {
    const body = parseBody(BODIES.generate, await context.req.text());
    const model = ready();
    return context.json(await answerGenerate(model, body, context.req.raw.signal));
  });
  app.post('/tokenize', async (context) => {
    const body = parseBody(BODIES.tokenize, await context.req.text());
    const model = ready();
    const tokens = tokenize(model, body);
    return context.json({ count: tokens.length, max_model_len: model.flags.contextTokens, tokens });
  });
  app.post('/detokenize', async (context) => {
    const body = parseBody(BODIES.detokenize, await context.req.text());
    const model = ready();
    refuseOtherModel(model, body.model);
    refuseUnknownIds(model, body.tokens);
    const text = model.decoder.textOf(body.tokens);
    return context.json({ prompt: text, text }); // vLLM's name and SGLang's
  });

  app.notFound((context) =>
    context.json(errorBody(`There is no ${context.req.method} ${context.req.path}`, 'NotFoundError', 404), 404),
  );
  app.onError((thrown, context) => {
    if (thrown instanceof Refusal) return context.json(errorBody(thrown.message, thrown.type, thrown.status), thrown.status);
    if (loaded()?.stopping.aborted) return context.json(errorBody(thrown.message, 'ServiceUnavailableError', 503), 503);
    if (context.req.raw.signal.aborted) return context.body(null, 400); // nobody is there to read it
    log(`a request failed: ${thrown.message}`);
    return context.json(errorBody('The engine failed on this request; its log has the reason', 'InternalServerError', 500), 500);
  });
  return app;
}

function tokenize(model: LoadedModel, body: TokenizeBody): number[] {
  refuseOtherModel(model, body.model);
  const { messages, prompt } = body;
  if (messages !== undefined && messages !== null && (prompt === undefined || prompt === null)) {
    const kwargs = body.chat_template_kwargs ?? {};
    return tokenizeChat(model, { messages, kwargs, addGenerationPrompt: body.add_generation_prompt ?? true });
  }
  if (typeof prompt !== 'string' || (messages !== undefined && messages !== null))
    throw new Refusal(400, 'Give either prompt or messages');
  return tokenizeText(model, prompt, body.add_special_tokens ?? true);
}
