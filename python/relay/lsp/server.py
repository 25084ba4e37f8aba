"""The protocol: messages of a client to questions of a Document, and its answers back."""

from __future__ import annotations

import asyncio
import logging

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from relay import _core
from relay.lsp.document import Document, Problem, Proposal, Refused
from relay.lsp.positions import Lines

# Seconds between the last key and the look at the text.
_QUIET = 0.2
_REQUEST_FAILED = -32803
_SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
_KIND = {
    "function": lsp.CompletionItemKind.Function,
    "operator": lsp.CompletionItemKind.Function,
    "keyword": lsp.CompletionItemKind.Keyword,
    "type": lsp.CompletionItemKind.Class,
    "constructor": lsp.CompletionItemKind.Constructor,
    "type parameter": lsp.CompletionItemKind.TypeParameter,
    "attribute": lsp.CompletionItemKind.Property,
    "word": lsp.CompletionItemKind.Constant,
    "prelude": lsp.CompletionItemKind.Module,
}


class RelayServer(LanguageServer):
    """The open texts of one client."""

    def __init__(self) -> None:
        # Whole texts: the lines of the protocol are not those of Python.
        super().__init__("relay", _core.__version__, lsp.TextDocumentSyncKind.Full)
        self._documents: dict[str, Document] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def document(self, uri: str) -> Document:
        """Returns the text of an address as it is now."""
        text = self.workspace.get_text_document(uri).source
        known = self._documents.get(uri)
        if known is None or known.source != text:
            known = self._documents[uri] = Document(text)
        return known

    def lines(self, document: Document) -> Lines:
        """Returns the lines of a text in the client's encoding."""
        encoding = self.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
        return Lines(document.text, lsp.PositionEncodingKind(encoding).value)

    def forget(self, uri: str) -> None:
        """Drops a text that the client has closed."""
        self._documents.pop(uri, None)
        self._stop_waiting(uri)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def _stop_waiting(self, uri: str) -> None:
        if (task := self._waiting.pop(uri, None)) is not None:
            task.cancel()

    def look_soon(self, uri: str, seconds: float) -> None:
        """Publishes the errors of a text once it has not changed for that time."""
        self._stop_waiting(uri)

        async def look() -> None:
            await asyncio.sleep(seconds)
            self.publish(uri)

        self._waiting[uri] = asyncio.get_running_loop().create_task(look())

    def publish(self, uri: str) -> None:
        """Sends the errors of a text."""
        document = self.document(uri)
        lines = self.lines(document)
        found = [_diagnostic(problem, lines, uri) for problem in document.problems()]
        version = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))

    def place(self, uri: str, position: lsp.Position) -> tuple[Document, Lines, int]:
        """Returns the text of an address, its lines and the index of a position."""
        document = self.document(uri)
        lines = self.lines(document)
        return document, lines, lines.offset(position.line, position.character)


def _range(lines: Lines, begin: int, end: int) -> lsp.Range:
    return lsp.Range(
        lsp.Position(*lines.position(begin)), lsp.Position(*lines.position(max(begin, end)))
    )


def _diagnostic(problem: Problem, lines: Lines, uri: str) -> lsp.Diagnostic:
    related = [
        lsp.DiagnosticRelatedInformation(lsp.Location(uri, _range(lines, begin, end)), text)
        for begin, end, text in problem.related
    ]
    return lsp.Diagnostic(
        _range(lines, problem.begin, problem.end),
        problem.message,
        severity=_SEVERITY.get(problem.severity, lsp.DiagnosticSeverity.Error),
        code=problem.code or None,
        source="relay",
        related_information=related or None,
    )


def _item(proposal: Proposal, where: lsp.Range) -> lsp.CompletionItem:
    doc = lsp.MarkupContent(lsp.MarkupKind.Markdown, proposal.documentation)
    return lsp.CompletionItem(
        proposal.text,
        kind=_KIND.get(proposal.sort, lsp.CompletionItemKind.Variable),
        detail=proposal.detail or None,
        documentation=doc if proposal.documentation else None,
        text_edit=lsp.TextEdit(where, proposal.text),
    )


def make_server() -> RelayServer:
    """Returns a server with all that it answers."""
    server = RelayServer()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.look_soon(params.text_document.uri, 0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.look_soon(params.text_document.uri, _QUIET)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document, lines, at = server.place(params.text_document.uri, params.position)
        found = document.hover(at)
        if found is None:
            return None
        begin, end, text = found
        return lsp.Hover(
            lsp.MarkupContent(lsp.MarkupKind.Markdown, text), _range(lines, begin, end)
        )

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        document, lines, at = server.place(uri, params.position)
        found = document.definition(at)
        return None if found is None else lsp.Location(uri, _range(lines, *found))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        uri = params.text_document.uri
        document, lines, at = server.place(uri, params.position)
        found = document.references(at, params.context.include_declaration)
        return [lsp.Location(uri, _range(lines, *one)) for one in found]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        document, lines, at = server.place(params.text_document.uri, params.position)
        return [lsp.DocumentHighlight(_range(lines, *one)) for one in document.references(at)]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        lines = server.lines(document)
        found = []
        for table, kind in (
            (document.names.functions, lsp.SymbolKind.Function),
            (document.names.types, lsp.SymbolKind.Class),
        ):
            for symbol in table.values():
                where = _range(lines, symbol.definition.begin, symbol.definition.end)
                found.append(lsp.DocumentSymbol(symbol.definition.text, kind, where, where))
        return found

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder:
        document, lines, at = server.place(params.text_document.uri, params.position)
        try:
            begin, end, name = document.renamable(at)
        except Refused as e:
            raise JsonRpcException(str(e), _REQUEST_FAILED) from None
        return lsp.PrepareRenamePlaceholder(_range(lines, begin, end), name)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        uri = params.text_document.uri
        document, lines, at = server.place(uri, params.position)
        try:
            name, places = document.rename(at, params.new_name)
        except Refused as e:
            raise JsonRpcException(str(e), _REQUEST_FAILED) from None
        edits = [lsp.TextEdit(_range(lines, *one), name) for one in places]
        return lsp.WorkspaceEdit(changes={uri: edits})

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["%", "@", "."])
    )
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        document, lines, at = server.place(params.text_document.uri, params.position)
        begin, proposals = document.completions(at)
        where = _range(lines, begin, at)
        return lsp.CompletionList(is_incomplete=False, items=[_item(p, where) for p in proposals])

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = server.document(params.text_document.uri)
        text = document.formatted()
        if text is None or text == document.text:
            return None if text is None else []
        return [lsp.TextEdit(_range(server.lines(document), 0, len(document.text)), text)]

    return server


def serve() -> None:
    """Serves one client on standard input and output, until it leaves."""
    # What a client does wrong goes to it, not to the terminal.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    make_server().start_io()
