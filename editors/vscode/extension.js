// Starts Relay's language server, and translates between the editor's interface and the protocol's messages.
"use strict";

const { spawn } = require("child_process");
const vscode = require("vscode");

const LANGUAGE = "relay";

// JSON-RPC over the pipes of a process: requests are promises, notifications go to `onNotification`.
class Connection {
  constructor(command, onNotification, onEnd) {
    this.number = 0;
    this.waiting = new Map();
    this.onNotification = onNotification;
    this.received = Buffer.alloc(0);
    this.process = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
    this.process.on("error", (error) => this.end(onEnd, error.message));
    this.process.on("exit", (status) => this.end(onEnd, `it ended with status ${status}`));
    this.process.stdin.on("error", () => {});
    this.process.stdout.on("data", (bytes) => this.receive(bytes));
  }

  end(onEnd, reason) {
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
    if (!this.closed) onEnd(reason);
    this.closed = true;
  }

  receive(bytes) {
    this.received = Buffer.concat([this.received, bytes]);
    for (;;) {
      const header = this.received.indexOf("\r\n\r\n");
      if (header < 0) return;
      const length = /content-length: *(\d+)/i.exec(this.received.toString("ascii", 0, header));
      const begin = header + 4;
      const end = begin + (length ? Number(length[1]) : 0);
      if (this.received.length < end) return;
      const body = this.received.toString("utf8", begin, end);
      this.received = this.received.subarray(end);
      if (length) this.handle(JSON.parse(body));
    }
  }

  handle(message) {
    if (message.method !== undefined) {
      this.onNotification(message.method, message.params);
      return;
    }
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (!waiting) return;
    if (message.error) waiting.reject(new Error(message.error.message));
    else waiting.resolve(message.result);
  }

  send(message) {
    if (this.closed) return;
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }), "utf8");
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  ask(method, params) {
    if (this.closed) return Promise.reject(new Error("the language server does not run"));
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }
}

const place = (p) => new vscode.Position(p.line, p.character);
const range = (r) => new vscode.Range(place(r.start), place(r.end));
const location = (l) => new vscode.Location(vscode.Uri.parse(l.uri), range(l.range));
const textEdit = (e) => new vscode.TextEdit(range(e.range), e.newText);
const markdown = (m) => new vscode.MarkdownString(m.value);
const of = (document) => ({ textDocument: { uri: document.uri.toString() } });
const at = (document, position) => ({
  ...of(document),
  position: { line: position.line, character: position.character },
});

function diagnostic(d) {
  // The protocol counts severities from 1, the editor from 0.
  const made = new vscode.Diagnostic(range(d.range), d.message, d.severity - 1);
  made.code = d.code;
  made.source = d.source;
  made.relatedInformation = (d.relatedInformation || []).map(
    (r) => new vscode.DiagnosticRelatedInformation(location(r.location), r.message));
  return made;
}

function completionItem(i) {
  const made = new vscode.CompletionItem(i.label, i.kind - 1);
  made.detail = i.detail;
  if (i.documentation) made.documentation = markdown(i.documentation);
  made.insertText = i.textEdit.newText;
  made.range = range(i.textEdit.range);
  return made;
}

function symbol(s) {
  return new vscode.DocumentSymbol(s.name, "", s.kind - 1, range(s.range), range(s.selectionRange));
}

function providers(server) {
  const ask = (method, params) => server.ask(`textDocument/${method}`, params);
  const many = (found, make) => (found || []).map(make);
  return [
    vscode.languages.registerHoverProvider(LANGUAGE, {
      provideHover: async (d, p) => {
        const found = await ask("hover", at(d, p));
        return found && new vscode.Hover(markdown(found.contents), range(found.range));
      },
    }),
    vscode.languages.registerDefinitionProvider(LANGUAGE, {
      provideDefinition: async (d, p) => {
        const found = await ask("definition", at(d, p));
        return found && location(found);
      },
    }),
    vscode.languages.registerReferenceProvider(LANGUAGE, {
      provideReferences: async (d, p, context) =>
        many(await ask("references", { ...at(d, p), context }), location),
    }),
    vscode.languages.registerDocumentHighlightProvider(LANGUAGE, {
      provideDocumentHighlights: async (d, p) =>
        many(await ask("documentHighlight", at(d, p)), (h) => new vscode.DocumentHighlight(range(h.range))),
    }),
    vscode.languages.registerDocumentSymbolProvider(LANGUAGE, {
      provideDocumentSymbols: async (d) => many(await ask("documentSymbol", of(d)), symbol),
    }),
    vscode.languages.registerRenameProvider(LANGUAGE, {
      prepareRename: async (d, p) => {
        const found = await ask("prepareRename", at(d, p));
        return { range: range(found.range), placeholder: found.placeholder };
      },
      provideRenameEdits: async (d, p, newName) => {
        const found = await ask("rename", { ...at(d, p), newName });
        const edit = new vscode.WorkspaceEdit();
        for (const [uri, edits] of Object.entries(found.changes)) {
          edit.set(vscode.Uri.parse(uri), edits.map(textEdit));
        }
        return edit;
      },
    }),
    vscode.languages.registerCompletionItemProvider(LANGUAGE, {
      provideCompletionItems: async (d, p) => {
        const found = await ask("completion", at(d, p));
        return found.items.map(completionItem);
      },
    }, "%", "@", "."),
    vscode.languages.registerDocumentFormattingEditProvider(LANGUAGE, {
      provideDocumentFormattingEdits: async (d, options) =>
        many(await ask("formatting", { ...of(d), options }), textEdit),
    }),
  ];
}

let server;

async function activate(context) {
  const command = vscode.workspace.getConfiguration(LANGUAGE).get("server");
  const shown = vscode.languages.createDiagnosticCollection(LANGUAGE);
  context.subscriptions.push(shown);
  server = new Connection(
    command,
    (method, params) => {
      if (method === "textDocument/publishDiagnostics") {
        shown.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic));
      }
    },
    (reason) => vscode.window.showWarningMessage(
      `Relay: the language server (${command.join(" ")}) does not run: ${reason}. ` +
      "Type: pip install 'relay[lsp]', or set relay.server."));
  try {
    await server.ask("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  } catch {
    return;
  }
  server.notify("initialized", {});
  const ours = (document) => document.languageId === LANGUAGE;
  const open = (document) => ours(document) && server.notify("textDocument/didOpen", {
    textDocument: {
      uri: document.uri.toString(), languageId: LANGUAGE, version: document.version, text: document.getText(),
    },
  });
  vscode.workspace.textDocuments.forEach(open);
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument(open),
    vscode.workspace.onDidCloseTextDocument(
      (document) => ours(document) && server.notify("textDocument/didClose", of(document))),
    vscode.workspace.onDidChangeTextDocument(({ document }) => ours(document) &&
      server.notify("textDocument/didChange", {
        textDocument: { uri: document.uri.toString(), version: document.version },
        contentChanges: [{ text: document.getText() }],
      })),
    ...providers(server));
}

async function deactivate() {
  if (!server || server.closed) return;
  server.closed = true;
  server.process.stdin.end();
}

module.exports = { activate, deactivate };
