//! Lists that a command reads once, in pages, and pages of pods.

use http::Request;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use kube::client::Body;
use kube::core::Status;
use kube::{Client, Error};
use serde_json::Value;

/// The number of objects in one page of a list.
const PAGE: u32 = 500;

/// Passes all objects of a list, as JSON, to `each`, including those before a page that fails. `query` continues the
/// parameters of the request, such as `&labelSelector=…`, encoded.
///
/// # Errors
/// When the API server rejects a page or does not respond.
pub async fn each_listed(
    client: &Client,
    path: &str,
    query: &str,
    each: impl FnMut(Value),
) -> Result<(), Error> {
    first_listed(client, path, query, usize::MAX, each).await.map(drop)
}

/// The same for the first pages of a list, until they have `most` objects. Returns whether that is the whole list.
///
/// # Errors
/// When the API server rejects a page or does not respond.
pub async fn first_listed(
    client: &Client,
    path: &str,
    query: &str,
    most: usize,
    mut each: impl FnMut(Value),
) -> Result<bool, Error> {
    let (mut next, mut count) = (String::new(), 0);
    loop {
        let request = Request::get(format!("{path}?limit={PAGE}{query}{next}")).body(Vec::new());
        let mut page: Value = client.request(request.map_err(Error::HttpError)?).await?;
        for item in page["items"].as_array_mut().into_iter().flatten() {
            each(item.take());
            count += 1;
        }
        match page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default() {
            "" => return Ok(true),
            _ if count >= most => return Ok(false),
            token => next = format!("&continue={token}"),
        }
    }
}

/// Reads the response of a pod through the API server. `path` is the path of the pod's proxy.
///
/// # Errors
/// When the API server or the pod rejects the request or does not respond, or the response has more than `most` bytes.
pub async fn page_of_pod(client: &Client, path: &str, most: usize) -> Result<Bytes, Error> {
    let request = Request::get(path).body(Body::empty()).map_err(Error::HttpError)?;
    let response = client.send(request).await?;
    let code = response.status();
    let body = Limited::new(response.into_body(), most).collect().await.map_err(Error::Service)?.to_bytes();
    if code.is_success() {
        return Ok(body);
    }
    let status = serde_json::from_slice::<Status>(&body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&body);
        Status::failure(text.trim(), "the pod rejects the request").with_code(code.as_u16())
    });
    Err(Error::Api(status.boxed()))
}
