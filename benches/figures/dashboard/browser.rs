//! A browser that shows a page of the dashboard.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, sleep_until, timeout};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// `throttle` of `layout.rs`: how often a page is fetched at most.
const THROTTLE: Duration = Duration::from_millis(500);

/// Connections with the dashboard.
pub type Connections = Client<HttpConnector, Full<Bytes>>;

/// A browser with a session.
#[derive(Clone)]
pub struct Browser {
    client: Connections,
    port: u16,
    /// The cookie of the session.
    pub cookie: String,
}

/// A page that was loaded.
#[derive(Clone)]
pub struct Page(pub String);

impl Page {
    /// The address of the stream of its changes.
    pub fn events(&self) -> Result<&str> {
        self.between("hx-sse:connect=\"", "\"").context("the page is not live")
    }

    /// The name in the first form that creates a machine from this Template.
    pub fn new_name(&self, template: &str) -> Result<&str> {
        let end = self.0.find(&format!("name=\"template\" value=\"{template}\"")).context("no such form")?;
        let begin = self.0[..end].rfind("name=\"name\" value=\"").context("a name")?;
        Page::part(&self.0[begin..end], "value=\"", "\"").context("a value")
    }

    /// The path of the style.
    pub fn style(&self) -> Result<&str> {
        self.between("rel=\"stylesheet\" href=\"", "\"").context("a style")
    }

    /// The error message of the page; empty if there is no error.
    pub fn notice(&self) -> &str {
        self.between("role=\"alert\">", "</div>")
            .or_else(|| self.between("<main", "</main>"))
            .unwrap_or_default()
    }

    /// Whether the page shows the last known state, because the API server does not respond.
    pub fn is_old(&self) -> bool {
        self.0.contains("id=\"old\"")
    }

    fn between(&self, begin: &str, end: &str) -> Option<&str> {
        Self::part(&self.0, begin, end)
    }

    fn part<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
        text.split_once(begin)?.1.split_once(end).map(|(part, _)| part)
    }
}

impl Browser {
    /// The connections of all browsers. They share the connections, as they do behind an Ingress.
    pub fn connections() -> Connections {
        Client::builder(TokioExecutor::new()).build_http()
    }

    pub fn new(client: Connections, port: u16, cookie: String) -> Self {
        Self { client, port, cookie }
    }

    /// The page at a path.
    pub async fn get(&self, path: &str) -> Result<Page> {
        self.page(path, &[]).await
    }

    /// The home page again, as its script fetches it.
    pub async fn fetch(&self) -> Result<Page> {
        self.fetch_at("/").await
    }

    /// The page at a path again, as its script fetches it.
    pub async fn fetch_at(&self, path: &str) -> Result<Page> {
        self.page(path, &[("hx-request", "true"), ("sec-fetch-site", "same-origin")]).await
    }

    /// Sends the form that creates a machine, and opens the page that it redirects to, with the result.
    pub async fn start(&self, template: &str, name: &str) -> Result<Page> {
        let form = format!("name={name}&templateNamespace=workspace-bench&template={template}");
        self.submit("/machines", form).await
    }

    /// Sends a form, and opens the page that it redirects to, with the result.
    pub async fn submit(&self, path: &str, form: String) -> Result<Page> {
        let request = self.request(Method::POST, path, &[("sec-fetch-site", "same-origin")]);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let answer = self.send(request.body(Full::from(form))?).await?;
        ensure!(answer.status() == StatusCode::SEE_OTHER, "a form is answered with {}", answer.status());
        let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let notice = text(SET_COOKIE).and_then(|cookie| cookie.split(';').next()).unwrap_or_default();
        let cookie = format!("{}; {notice}", self.cookie);
        let path = text(LOCATION).context("a place")?;
        Self { cookie, ..self.clone() }.get(path).await
    }

    /// Opens the stream of the changes of a page.
    pub async fn listen(&self, page: &Page) -> Result<Stream> {
        let answer = self.send(self.request(Method::GET, page.events()?, &[]).body(Full::default())?).await?;
        ensure!(answer.status() == StatusCode::OK, "a stream is answered with {}", answer.status());
        Ok(Stream { body: answer.into_body(), text: String::new(), next: Instant::now() })
    }

    async fn page(&self, path: &str, headers: &[(&str, &str)]) -> Result<Page> {
        let request = self.request(Method::GET, path, headers).body(Full::default())?;
        let answer = self.send(request).await?;
        ensure!(answer.status() == StatusCode::OK, "{path} is answered with {}", answer.status());
        let body = timeout(PATIENCE, answer.into_body().collect()).await.context("no end of an answer")??;
        Ok(Page(String::from_utf8(body.to_bytes().into())?))
    }

    fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> http::request::Builder {
        let uri = format!("http://127.0.0.1:{}{path}", self.port);
        let request = Request::builder().method(method).uri(uri).header(COOKIE, &self.cookie);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        Ok(timeout(PATIENCE, self.client.request(request)).await.context("no answer")??)
    }
}

/// The stream of the changes of a page.
pub struct Stream {
    body: Incoming,
    text: String,
    /// The earliest time of the next fetch of the page.
    next: Instant,
}

impl Stream {
    /// Completes when the page must be fetched again.
    pub async fn changed(&mut self) -> Result<()> {
        self.event("refresh").await?;
        sleep_until(self.next).await;
        self.next = Instant::now() + THROTTLE;
        Ok(())
    }

    /// Completes when an event with this name has arrived. Several events at once count as one.
    pub async fn event(&mut self, name: &str) -> Result<()> {
        let event = format!("event: {name}\ndata:\n\n");
        while !self.text.contains(&event) {
            let frame = self.body.frame().await.context("the stream has ended")??;
            if let Ok(data) = frame.into_data() {
                self.text.push_str(std::str::from_utf8(&data)?);
            }
        }
        self.text.clear();
        Ok(())
    }
}
