//! Styles and scripts. Their paths have a hash of their content, so browsers keep them for good.
//!
//! The script of live pages is that of htmx with two of its extensions, which `make assets` fetches. A build without the feature
//! `live` does not have it: its pages are shown anew on request.

use std::fmt::Write as _;
use std::sync::LazyLock;

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Bytes;
use ring::digest;

use crate::runtime::http_server::text;

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
        let mut hash = String::new();
        for byte in &digest.as_ref()[..12] {
            // Writing to a String cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        Self { path: format!("/assets/{hash}/{name}"), content_type, is_compressed, content }
    }
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_bytes!("../../../assets/dashboard.css");
    Asset::new("dashboard.css", "text/css; charset=utf-8", false, content)
});
static ZONE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("dashboard.js", SCRIPT, false, include_bytes!("../../../assets/dashboard.js"))
});
#[cfg(feature = "live")]
static LIVE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("live.js", SCRIPT, true, include_bytes!("../../../assets/vendor/live.js.gz"))
});

fn all() -> Vec<&'static Asset> {
    vec![
        &STYLE,
        &ZONE,
        #[cfg(feature = "live")]
        &LIVE,
    ]
}

/// The path of the style of all pages.
pub fn style() -> &'static str {
    &STYLE.path
}

/// The paths of the scripts of all pages, in their order.
pub fn scripts() -> Vec<&'static str> {
    all().into_iter().skip(1).map(|asset| asset.path.as_str()).collect()
}

/// Whether pages show changes at once.
pub fn are_pages_live() -> bool {
    cfg!(feature = "live")
}

/// The style or script at a path, which begins after `/assets/`.
pub fn answer(path: &str) -> Response<Bytes> {
    let is_it = |asset: &&Asset| asset.path.strip_prefix("/assets/") == Some(path);
    let Some(asset) = all().into_iter().find(is_it) else {
        return text(StatusCode::NOT_FOUND, "no such page\n");
    };
    let mut answer = Response::new(Bytes::from_static(asset.content));
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
    fn what_pages_name_is_served_for_good_and_nothing_else() {
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
