'use strict';
// node engine.js FOLDER TRACE
//
// Loads TRACE into Perfetto's trace processor (its WebAssembly build, in FOLDER) and answers queries: one line of JSON
// with SQL on standard input, {"sql": "..."}; one line of JSON on standard output, {"columns": [...], "rows": [...]}
// or {"error": "..."}. The first line on standard output is {"problem": "..."}: what is wrong with the framing of the
// file's packets, which the trace processor passes over, or "". Integers are written as JSON numbers in full.
const fs = require('fs');
const path = require('path');

// --- protobuf: the few messages of TraceProcessorRpc that are needed

function varint(n) {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  out.push(Number(n));
  return Buffer.from(out);
}
const intField = (f, n) => Buffer.concat([varint(f * 8), varint(n)]);
const bytesField = (f, b) => Buffer.concat([varint(f * 8 + 2), varint(b.length), b]);

function readVarint(b, pos) {
  let value = 0n, shift = 0n, c;
  do {
    if (pos >= b.length) throw new Error('engine: an answer ends within a number');
    c = b[pos++];
    value |= BigInt(c & 127) << shift;
    shift += 7n;
  } while (c & 128);
  return [value, pos];
}
function* varints(b) {
  for (let v, pos = 0; pos < b.length;) {
    [v, pos] = readVarint(b, pos);
    yield v;
  }
}
function* fields(b) { // [number, value]: a BigInt or bytes
  for (let tag, n, pos = 0; pos < b.length;) {
    [tag, pos] = readVarint(b, pos);
    const wire = Number(tag & 7n);
    if (wire === 0) [n, pos] = readVarint(b, pos);
    else {
      let size = wire === 1 ? 8 : 4;
      if (wire === 2) {
        [n, pos] = readVarint(b, pos);
        size = Number(n);
      }
      if (pos + size > b.length) throw new Error('engine: an answer ends within a field');
      n = b.subarray(pos, pos += size);
    }
    yield [Number(tag >> 3n), n];
  }
}

// --- the file's packets: a run of field 1, each with its length

class Framing {
  constructor() {
    this.head = []; // of a packet, as far as it was seen
    this.left = 0; // bytes of a packet that were not seen yet
    this.problem = '';
    this.empty = true;
  }
  add(b) {
    for (let i = 0; i < b.length && !this.problem;) {
      this.empty = false;
      if (this.left > 0) {
        const n = Math.min(this.left, b.length - i);
        this.left -= n;
        i += n;
        continue;
      }
      this.head.push(b[i++]);
      const h = this.head;
      if (h[0] !== 0x0a || h.length > 6) this.problem = 'a packet does not begin where one should';
      else if (h.length > 1 && h[h.length - 1] < 128) {
        this.left = h.slice(1).reduceRight((n, c) => n * 128 + (c & 127), 0);
        this.head = [];
      }
    }
  }
  end() {
    if (this.empty) return 'the file is empty';
    if (this.problem) return this.problem;
    return this.left > 0 || this.head.length > 0 ? 'the file ends within a packet' : '';
  }
}

// --- the engine

const BUFFER = 16 << 20;
const METHOD = { append: 1, finalize: 2, query: 3 }; // TraceProcessorRpc.TraceProcessorMethod

class Engine {
  constructor(folder) {
    // The bundle ends by starting a web worker. Take the engine's factory out of it instead.
    const source = fs.readFileSync(path.join(folder, 'glue.js'), 'latin1');
    const start = 'var engineExports = requireEngine();';
    if (source.split(start).length !== 2) throw new Error('glue.js has another layout than expected');
    const self = { location: { href: 'file:///' } };
    const load = new Function('self', 'WorkerGlobalScope', 'location', 'crypto',
      source.replace(start, 'return requireTrace_processor();') + '\nreturn engine;');
    const print = (line) => {
      if (!/^\s*$|__syscall_mprotect|Loading trace/.test(line)) process.stderr.write(line + '\n');
    };
    this.module = load(self, function () {}, self.location, require('crypto').webcrypto)({
      locateFile: (name) => name,
      wasmBinary: fs.readFileSync(path.join(folder, 'trace_processor.wasm')),
      print, printErr: print,
    });
    this.answers = [];
    this.sequence = 0;
    const reply = this.module.addFunction((at, n) => {
      this.answers.push(Buffer.from(this.module.HEAPU8.slice(at >>> 0, (at >>> 0) + n)));
    }, 'vpi');
    this.buffer = this.module.ccall('trace_processor_rpc_init', 'pointer', ['pointer', 'number'], [reply, BUFFER]) >>> 0;
  }
  // Sends a request and yields each answer as a Map from field number to value.
  *call(method, ...args) {
    const rpc = Buffer.concat([intField(1, this.sequence++), intField(2, method), ...args]);
    const stream = bytesField(1, rpc);
    this.answers = [];
    for (let at = 0; at < stream.length; at += BUFFER) {
      const part = stream.subarray(at, at + BUFFER);
      this.module.HEAPU8.set(part, this.buffer);
      this.module.ccall('trace_processor_on_rpc_request', 'void', ['number'], [part.length]);
    }
    let any = false;
    for (const [f, v] of fields(Buffer.concat(this.answers))) {
      if (f !== 1) continue;
      const answer = new Map(fields(v));
      if (answer.has(5)) throw new Error('engine: ' + answer.get(5));
      if (answer.has(4)) throw new Error(`engine: request ${method} is unknown to it`);
      any = true;
      yield answer;
    }
    if (!any) throw new Error(`engine: no answer to request ${method}`);
  }
  fail(message, errorField) { // throws the error text within an answer, if there is one
    for (const [f, v] of fields(message || Buffer.alloc(0))) {
      if (f === errorField && v.length) throw new Error(v.toString());
    }
  }
  load(file) {
    const framing = new Framing();
    const chunk = Buffer.alloc(4 << 20);
    const fd = fs.openSync(file, 'r');
    for (let n; (n = fs.readSync(fd, chunk, 0, chunk.length, null)) > 0;) {
      framing.add(chunk.subarray(0, n));
      for (const a of this.call(METHOD.append, bytesField(101, chunk.subarray(0, n)))) this.fail(a.get(201), 2);
    }
    fs.closeSync(fd);
    for (const a of this.call(METHOD.finalize)) this.fail(a.get(212), 1);
    return framing.end();
  }
  query(sql) {
    const columns = [], cells = [];
    for (const a of this.call(METHOD.query, bytesField(103, bytesField(1, Buffer.from(sql))))) {
      for (const [f, v] of fields(a.get(203) || Buffer.alloc(0))) {
        if (f === 1) columns.push(v.toString());
        if (f === 2 && v.length) throw new Error(v.toString());
        if (f === 3) this.batch(v, cells);
      }
    }
    const rows = [];
    for (let i = 0; columns.length && i < cells.length; i += columns.length) rows.push(cells.slice(i, i + columns.length));
    return { columns, rows };
  }
  batch(message, cells) { // QueryResult.CellsBatch
    let kinds = [], ints = [], texts = [];
    const floats = [];
    for (const [f, v] of fields(message)) {
      if (f === 1) kinds = [...varints(v)].map(Number);
      if (f === 2) ints = [...varints(v)];
      if (f === 3) for (let at = 0; at < v.length; at += 8) floats.push(v.readDoubleLE(at));
      if (f === 5) texts = v.toString().split('\0');
    }
    let i = 0, d = 0, t = 0;
    for (const kind of kinds) {
      if (kind === 2) cells.push(BigInt.asIntN(64, ints[i++]));
      else if (kind === 3) cells.push(floats[d++]);
      else if (kind === 4) cells.push(texts[t++]);
      else cells.push(null); // CELL_NULL, and CELL_BLOB, which no test needs
    }
  }
}

// JSON.stringify knows no BigInt.
function json(v) {
  if (typeof v === 'bigint') return v.toString();
  if (Array.isArray(v)) return '[' + v.map(json).join(',') + ']';
  return JSON.stringify(v) ?? 'null';
}
function answer(text) {
  const b = Buffer.from(text + '\n');
  for (let at = 0; at < b.length;) {
    try {
      at += fs.writeSync(1, b, at);
    } catch (e) {
      if (e.code !== 'EAGAIN') throw e;
    }
  }
}

const [folder, trace] = process.argv.slice(2);
// Below this size, optimised code costs more to compile than it saves.
if (fs.statSync(trace).size < 64 << 20) require('v8').setFlagsFromString('--liftoff-only');
let engine;
try {
  engine = new Engine(folder);
  answer(`{"problem":${json(engine.load(trace))}}`);
} catch (e) {
  answer(`{"error":${json(`${trace}: ${e.message}`)}}`);
  process.exit(1);
}
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  try {
    const { columns, rows } = engine.query(JSON.parse(line).sql);
    answer(`{"columns":${json(columns)},"rows":${json(rows)}}`);
  } catch (e) {
    answer(`{"error":${json(e.message)}}`);
  }
});
