//! A browser at the site of the Instances and at Keycloak, and the Ingress controller in between, which handles
//! the annotations of an Ingress like ingress-nginx.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::program::Program;

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header `Location`.
    pub location: String,
    /// The headers `Set-Cookie`: names and values.
    pub cookies: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A status and a text.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned(), ..Self::default() }
    }

    /// A redirect.
    pub fn redirect(location: String) -> Self {
        Self { status: 302, location, ..Self::default() }
    }
}

/// Cookies by name, of one site.
pub type Cookies = BTreeMap<String, String>;

/// The site of the Instances, behind its Ingresses.
pub struct Site<'a> {
    /// The Ingress of an environment.
    pub environment: Value,
    /// The Ingress of its proxy.
    pub proxy: Value,
    /// The proxy.
    pub program: &'a Program,
}

/// The text of the page of the environment.
pub const PAGE: &str = "the page of the environment";

impl Site<'_> {
    /// The host name of both Ingresses.
    pub fn host(&self) -> &str {
        self.environment["spec"]["rules"][0]["host"].as_str().expect("a host")
    }

    /// Answers a request for a path with a query.
    fn answer(&self, target: &str, cookies: &Cookies) -> Answer {
        let path = |ingress: &Value| {
            let path = ingress["spec"]["rules"][0]["http"]["paths"][0]["path"].as_str().expect("a path");
            path.trim_end_matches("(/|$)(.*)").to_owned()
        };
        if target.starts_with(&path(&self.proxy)) {
            return self.program.answer(self.host(), target, cookies);
        }
        assert!(target.starts_with(&path(&self.environment)), "no Ingress has {target}");
        let annotation = |name: &str| {
            let annotations = &self.environment["metadata"]["annotations"];
            annotations[&format!("nginx.ingress.kubernetes.io/{name}")]
                .as_str()
                .expect("an annotation")
                .to_owned()
        };
        let question = annotation("auth-url");
        let question = question.strip_prefix(&format!("https://{}", self.host())).expect("the same host");
        match self.answer(question, cookies).status {
            200..300 => Answer::text(200, PAGE),
            401 => {
                Answer::redirect(annotation("auth-signin").replace("$escaped_request_uri", &escaped(target)))
            }
            status => Answer::text(if status == 403 { 403 } else { 500 }, ""),
        }
    }
}

/// A browser of one user.
pub struct Browser<'a> {
    site: &'a Site<'a>,
    /// The cookies of the site.
    pub cookies: Cookies,
    at_keycloak: Cookies,
}

impl<'a> Browser<'a> {
    /// A browser without cookies.
    pub fn new(site: &'a Site<'a>) -> Self {
        Self { site, cookies: Cookies::new(), at_keycloak: Cookies::new() }
    }

    /// Opens a path of the site and follows redirects until there is a page.
    pub fn open(&mut self, path: &str) -> Answer {
        let start = format!("https://{}{path}", self.site.host());
        self.follow(Answer::redirect(start))
    }

    /// Enters user name and password in the login form of a response.
    pub fn log_in(&mut self, form: &Answer, username: &str, password: &str) -> Answer {
        let (_, rest) = form.body.split_once("action=\"").unwrap_or_else(|| panic!("no form: {form:?}"));
        let action = rest.split('"').next().expect("the end of the action").replace("&amp;", "&");
        let body = format!("username={}&password={}", escaped(username), escaped(password));
        let request = Request { headers: &[], cookies: &self.at_keycloak, form: Some(&body) };
        let answer = request.send(&action);
        self.at_keycloak.extend(answer.cookies.clone());
        self.follow(answer)
    }

    fn follow(&mut self, mut answer: Answer) -> Answer {
        let site = format!("https://{}", self.site.host());
        for _ in 0..10 {
            if !(300..400).contains(&answer.status) {
                return answer;
            }
            let location = answer.location.clone();
            // A path alone belongs to the site: Keycloak redirects to whole URLs.
            let path = Some(&*location).filter(|location| location.starts_with('/'));
            if let Some(target) = location.strip_prefix(&site).or(path) {
                answer = self.site.answer(target, &self.cookies);
                self.cookies.extend(answer.cookies.clone());
            } else {
                let request = Request { headers: &[], cookies: &self.at_keycloak, form: None };
                answer = request.send(&location);
                self.at_keycloak.extend(answer.cookies.clone());
            }
        }
        panic!("too many redirects: {answer:?}")
    }
}

/// A text in a URL.
pub fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A request to a server of this machine.
pub struct Request<'a> {
    /// The headers except for the cookies. Without a `Host`, it is the host of the URL.
    pub headers: &'a [(&'a str, &'a str)],
    /// The cookies.
    pub cookies: &'a Cookies,
    /// The form that is sent, if it is not a GET.
    pub form: Option<&'a str>,
}

impl Request<'_> {
    /// Sends it, and returns the response.
    pub fn send(&self, url: &str) -> Answer {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url} is not on this machine"));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut stream = TcpStream::connect(host).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a time limit");
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (method, body) = self.form.map_or(("GET", ""), |body| ("POST", body));
        let mut headers: Vec<String> =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        if self.headers.iter().all(|(name, _)| *name != "Host") {
            headers.push(format!("Host: {host}\r\n"));
        }
        // With HTTP 1.0, the body ends with the connection.
        write!(
            stream,
            "{method} /{path} HTTP/1.0\r\n{}Cookie: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{body}",
            headers.concat(),
            cookies.join("; "),
            body.len()
        )
        .expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        Answer::read(&String::from_utf8_lossy(&bytes))
    }
}

impl Answer {
    /// The answer in a text.
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let headers: Vec<(String, &str)> = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
            .collect();
        let value =
            |name: &str| headers.iter().find(|(other, _)| other == name).map_or("", |(_, value)| *value);
        let cookie = |(name, value): &(String, &str)| {
            let pair = value.split(';').next().filter(|_| name == "set-cookie")?;
            pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        Self {
            status: head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"),
            location: value("location").to_owned(),
            cookies: headers.iter().filter_map(cookie).collect(),
            body: body.to_owned(),
        }
    }
}
