//! Tests with a mail server that rejects the content of mails.

use parking_lot::Mutex as Lock;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The current response to the content of a mail.
type Response = Arc<Lock<&'static str>>;

/// Accepts every command of the connections, and answers the content of mails with the current response.
async fn serve(listener: TcpListener, response: Response) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, Arc::clone(&response)));
    }
}

async fn converse(stream: TcpStream, response: Response) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(b"220 mail.test\r\n").await?;
    let mut is_content = false;
    while let Some(line) = lines.next_line().await? {
        let answer = match line.as_str() {
            "." if is_content => *response.lock(),
            _ if is_content => continue,
            "DATA" => "354 go on",
            _ if line.starts_with("RCPT TO:<nobody@") => "550 5.1.1 no such mailbox",
            _ => "250 ok",
        };
        is_content = line == "DATA";
        writer.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_rejection_after_the_content_is_an_outage_until_a_mail_is_accepted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let response = Response::new(Lock::new("451 4.7.1 Service unavailable"));
    tokio::spawn(serve(listener, Arc::clone(&response)));
    let config = MailConfig {
        transport: MailTransport::Smtp,
        host: "127.0.0.1".to_owned(),
        port,
        tls: MailTls::None,
        from: "labs@example.org".to_owned(),
        time_zone: "Europe/Rome".to_owned(),
        ..MailConfig::default()
    };
    let outages = Outages::default();
    let mailer = Mailer::new(&config, Gate::open()).unwrap().reporting_to(&outages);
    let mail = plain(MailKind::Expired);
    assert_eq!(mailer.ask().await, Ok(()));
    let error = mailer.send(&mail).await.unwrap_err();
    assert_eq!(error.reason(), "MailServerUnavailable");
    let line = format!("[!] mail server 127.0.0.1:{port}: failing for ");
    assert!(outages.lines().starts_with(&line), "{}", outages.lines());
    // Neither a request without a mail nor a missing mailbox shows that the content of mails is accepted.
    assert_eq!(mailer.ask().await, Err(error));
    let nobody = Mail { tenant_email: "nobody@example.com".to_owned(), ..mail.clone() };
    assert_eq!(mailer.send(&nobody).await.unwrap_err().reason(), "MailRecipientRefused");
    assert!(outages.lines().starts_with(&line), "{}", outages.lines());
    *response.lock() = "250 2.0.0 accepted";
    mailer.send(&mail).await.unwrap();
    assert_eq!((mailer.ask().await, outages.lines()), (Ok(()), String::new()));
}
