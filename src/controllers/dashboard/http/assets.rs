//! Styles and scripts. Their paths contain a hash of their content, so browsers can cache them permanently.
//!
//! The script of live pages consists of htmx and two of its extensions, which `make assets` fetches. A build before
//! that does not have it (`cfg(live)`, build.rs): its pages have a link that reloads them.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use ring::digest;

use super::response::text;

/// A style or a script.
struct Asset {
    /// Its path, which begins with a slash.
    path: String,
    content_type: &'static str,
    is_compressed: bool,
    content: &'static [u8],
}

impl Asset {
    fn new(name: &str, content_type: &'static str, is_compressed: bool, content: &'static [u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, content);
        let bytes = digest.as_ref().iter().take(12);
        let hash = bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        Self { path: format!("/assets/{hash}/{name}"), content_type, is_compressed, content }
    }
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The style of all pages, followed by the scripts in the order of execution.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let style = include_bytes!("../../../../assets/dashboard.css");
    vec![
        Asset::new("dashboard.css", "text/css; charset=utf-8", false, style),
        Asset::new("dashboard.js", SCRIPT, false, include_bytes!("../../../../assets/dashboard.js")),
        #[cfg(live)]
        Asset::new("live.js", SCRIPT, true, include_bytes!("../../../../assets/vendor/live.js.gz")),
    ]
});

/// Returns the path of the style of all pages.
pub fn style() -> &'static str {
    &ASSETS[0].path
}

/// Returns the paths of the scripts of all pages, in the order of execution.
pub fn scripts() -> Vec<&'static str> {
    ASSETS.iter().skip(1).map(|asset| asset.path.as_str()).collect()
}

/// Whether pages update automatically.
pub fn are_pages_live() -> bool {
    cfg!(live)
}

/// Returns the style or script at a path below `/assets/`.
pub fn answer(path: &str) -> Response {
    let is_it = |asset: &&Asset| asset.path.strip_prefix("/assets/") == Some(path);
    let Some(asset) = ASSETS.iter().find(is_it) else {
        return text(StatusCode::NOT_FOUND, "no such page\n");
    };
    let mut answer = Response::new(Bytes::from_static(asset.content).into());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    if asset.is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_assets_of_pages_are_served_and_they_are_cached_permanently() {
        for path in scripts().into_iter().chain([style()]) {
            let found = answer(path.strip_prefix("/assets/").expect("a path"));
            assert_eq!(found.status(), StatusCode::OK, "{path}");
            assert_eq!(found.headers()["cache-control"], "public, max-age=31536000, immutable", "{path}");
        }
        let name = style().rsplit('/').next().expect("a name");
        for path in ["", name, &format!("000000000000000000000000/{name}"), "../dashboard.css"] {
            assert_eq!(answer(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}
