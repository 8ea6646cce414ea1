//! Lists that a command reads once, in pages.

use http::Request;
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
    mut each: impl FnMut(Value),
) -> Result<(), Error> {
    let mut next = String::new();
    loop {
        let request = Request::get(format!("{path}?limit={PAGE}{query}{next}")).body(Vec::new());
        let mut page: Value = client.request(request.map_err(Error::HttpError)?).await?;
        page["items"].as_array_mut().into_iter().flatten().for_each(|item| each(item.take()));
        match page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default() {
            "" => return Ok(()),
            token => next = format!("&continue={token}"),
        }
    }
}
