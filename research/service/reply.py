"""What goes back to whoever asked: the application's answer with our headers, or a problem in its place."""

from __future__ import annotations

from html import escape

from research.service.answer_headers import Headers, completed
from research.service.asgi import Message, Receive, Send
from research.service.asked import Asked
from research.service.bodies import drain
from research.service.problems import MEDIA_TYPE, Problem


class Reply:
    """`send` for the application, and the ways to answer without it. `own` are the headers of this very request."""

    def __init__(self, send: Send, receive: Receive, asked: Asked, name: str, own: Headers) -> None:
        self._send, self._receive, self._asked, self._name, self._own = send, receive, asked, name, own
        self.begun = False
        self.refused = False
        self._held: list[Message] = []

    async def send(self, message: Message) -> None:
        if self.refused:  # whatever the application makes of a body that was cut off
            return
        if self._held or (message["type"] == "http.response.start" and message["status"] == 500):
            self._held.append(message)
        else:
            await self._forward(message)

    async def release(self) -> None:
        """Send what was held back: an answer of status 500, for frameworks send one of their own before they raise, and
        ours says more. If the application raises after it, `refuse` answers in its place."""
        for message in self._held:
            await self._forward(message)
        self._held = []

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, and let nothing of the application through after it. If it had begun to answer, there
        is no way but to end in the middle, upon which the server cuts the connection."""
        if self.begun:
            self.refused = True
            return
        page = problem.status == 401 and self._asked.is_for_a_person
        body = _page(problem) if page else problem.body(self._name)
        headers: Headers = [
            (b"content-type", b"text/html; charset=utf-8" if page else MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        unread = self._asked.has_body
        if unread:
            headers.append((b"connection", b"close"))
        await self._start(problem.status, headers)
        await self._send({"type": "http.response.body", "body": body, "more_body": unread})
        if unread:
            if problem.status != 408 and not self._asked.waits_to_send:
                await drain(self._receive)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message = {**message, "headers": completed(message.get("headers", ()), self._own)}
        await self._send(message)

    async def nothing(self, headers: Headers) -> None:
        await self._start(204, headers)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, status: int, headers: Headers) -> None:
        self.begun = self.refused = True
        await self._send({"type": "http.response.start", "status": status, "headers": completed(headers, self._own)})


def _page(problem: Problem) -> bytes:
    """The same for somebody who looks at it in a browser."""
    title = escape(problem.title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>ctx: {title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<p>{title}. <a href="/">Log in</a>, or open the link that ctx serve prints.</p></html>\n'
    ).encode()
