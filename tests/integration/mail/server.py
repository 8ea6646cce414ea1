"""A mail server for the tests: aiosmtpd with TLS and login, which answers by the recipient.

It binds a free port on 127.0.0.1, writes the number to FOLDER/port, and appends what it accepts to FOLDER/mails,
a line of JSON for each mail. FOLDER/settings.json says what it is like.
"""

import asyncio
import base64
import json
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

FOLDER = pathlib.Path(sys.argv[1])
SETTINGS = json.loads((FOLDER / "settings.json").read_text())


def login(name, password, identity):
    if (name, password) == ("crownlabs", SETTINGS["password"]):
        return AuthResult(success=True, auth_data={"name": name, "identity": identity})
    # Some servers repeat the value that they reject.
    return AuthResult(success=False, handled=False, message=f"535 5.7.8 {password} is not the password of {name}")


def is_full(hostname):
    return "." in hostname


class Handler:
    def __init__(self):
        self.greylisted = set()

    async def auth_PLAIN(self, server, args):
        identity, name, password = base64.b64decode(args[1]).decode().split("\0")
        return login(name, password, identity)

    async def handle_NOOP(self, server, session, envelope, argument):
        if (FOLDER / "close").exists():
            server.transport.abort()
        return "250 OK"

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        if SETTINGS["refuses"] == "EHLO" and not is_full(hostname):
            return [f"504 5.5.2 <{hostname}>: Helo command rejected: need fully-qualified hostname"]
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):
        if address == "refused@example.org":
            return "553 5.1.8 this sender is not welcome"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        local = address.split("@")[0]
        # As Postfix does with smtpd_delay_reject, which is its default.
        if SETTINGS["refuses"] == "EHLO at RCPT" and not is_full(session.host_name):
            return f"504 5.5.2 <{session.host_name}>: Helo command rejected: need fully-qualified hostname"
        if SETTINGS["refuses"] == "RCPT":
            return f"554 5.7.1 <{address}>: Relay access denied"
        if local == "refused":
            return "550 5.1.1 no such mailbox"
        if local == "greylisted" and session.peer[0] not in self.greylisted:
            self.greylisted.add(session.peer[0])
            return "451 4.7.1 try again later"
        if local == "dropped":
            server.transport.abort()
            return "250 OK"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        local = envelope.rcpt_tos[0].split("@")[0]
        if local == "silent":
            await asyncio.sleep(3600)
        if local == "full":
            return "552 5.2.2 the mailbox is full"
        if b"CASINO" in envelope.original_content:
            return "554 5.7.1 this looks like spam"
        mail = {
            "from": envelope.mail_from,
            "options": envelope.mail_options,
            "to": envelope.rcpt_tos,
            "text": envelope.original_content.decode(),
            "peer": session.peer[1],
            "hello": session.host_name,
            "tls": session.ssl is not None or SETTINGS["tls"] == "implicit",
            "login": session.auth_data,
        }
        with open(FOLDER / "mails", "a") as mails:
            mails.write(json.dumps(mail) + "\n")
        return "250 2.0.0 accepted"


async def main():
    context = None
    if SETTINGS["tls"] != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(FOLDER / "server.crt", FOLDER / "server.key")
    starttls = SETTINGS["tls"] == "starttls"
    handler = Handler()

    def protocol():
        return SMTP(
            handler,
            hostname="mail.test",
            enable_SMTPUTF8=True,
            tls_context=context if starttls else None,
            require_starttls=starttls,
            authenticator=lambda server, session, envelope, mechanism, data: login(
                data.login.decode(), data.password.decode(), ""
            ),
            auth_required=SETTINGS["login"],
            auth_require_tls=starttls,
            auth_exclude_mechanism=SETTINGS["without"],
        )

    tls = context if SETTINGS["tls"] == "implicit" else None
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=tls)
    temporary = FOLDER / "port.new"
    temporary.write_text(str(server.sockets[0].getsockname()[1]))
    temporary.rename(FOLDER / "port")
    await server.serve_forever()


asyncio.run(main())
