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

/// A style, a script, or the logo.
#[derive(Debug)]
pub struct Asset {
    /// Its path, which begins with a slash.
    pub path: String,
    content_type: &'static str,
    is_compressed: bool,
    content: Bytes,
}

impl Asset {
    /// Creates an asset, whose path has this name at the end.
    pub fn new(
        name: &str,
        content_type: &'static str,
        is_compressed: bool,
        content: impl Into<Bytes>,
    ) -> Self {
        let content = content.into();
        let digest = digest::digest(&digest::SHA256, &content);
        let bytes = digest.as_ref().iter().take(12);
        let hash = bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        Self { path: format!("/assets/{hash}/{name}"), content_type, is_compressed, content }
    }

    /// Returns the response, if this is the asset at a path below `/assets/`.
    pub fn answer(&self, path: &str) -> Option<Response> {
        (self.path.strip_prefix("/assets/") == Some(path)).then(|| {
            let mut answer = Response::new(self.content.clone().into());
            let headers = answer.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
            if self.is_compressed {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            answer
        })
    }
}

/// The content type of a style.
pub const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The style of all pages, followed by the scripts in the order of execution.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let style = lean(include_str!("../../../../assets/dashboard.css"));
    let script =
        [include_str!("../../../../assets/dashboard.js"), include_str!("../../../../assets/page.js")]
            .map(lean)
            .concat();
    #[cfg(live)]
    let live: &'static [u8] = include_bytes!("../../../../assets/vendor/live.js.gz");
    vec![
        Asset::new("dashboard.css", STYLE, false, style),
        Asset::new("dashboard.js", SCRIPT, false, script),
        #[cfg(live)]
        Asset::new("live.js", SCRIPT, true, live),
    ]
});

/// Returns a style or script without the indentation and the comments of its lines. No text in it has several lines.
fn lean(content: &str) -> String {
    let lines = content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.fold(String::new(), |all, line| all + line + "\n")
}

/// The icon of the pages in tabs and bookmarks.
static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let icon: &'static [u8] = include_bytes!("../../../../assets/icon.png");
    Asset::new("icon.png", "image/png", false, icon)
});

/// The scripts of single pages, which are modules that contain a library, and their styles. `make assets` makes them.
static MODULES: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    #[cfg(console)]
    let console: &'static [u8] = include_bytes!("../../../../assets/vendor/console.js.gz");
    #[cfg(terminal)]
    let [terminal, style]: [&'static [u8]; 2] = [
        include_bytes!("../../../../assets/vendor/terminal.js.gz"),
        include_bytes!("../../../../assets/vendor/terminal.css.gz"),
    ];
    vec![
        #[cfg(console)]
        Asset::new("console.js", SCRIPT, true, console),
        #[cfg(terminal)]
        Asset::new("terminal.js", SCRIPT, true, terminal),
        #[cfg(terminal)]
        Asset::new("terminal.css", STYLE, true, style),
    ]
});

/// Returns the path of the script or the style of a single page, such as `console.js`; `None` if it is not in this build.
pub fn module(name: &str) -> Option<&'static str> {
    let mut paths = MODULES.iter().map(|asset| asset.path.as_str());
    paths.find(|path| path.rsplit('/').next() == Some(name))
}

/// Returns the path of the icon, for a university without a logo.
pub fn icon() -> &'static str {
    &ICON.path
}

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

/// Returns the style, script or icon at a path below `/assets/`.
pub fn answer(path: &str) -> Response {
    let mut all = ASSETS.iter().chain([&*ICON]).chain(&*MODULES);
    let found = all.find_map(|asset| asset.answer(path));
    found.unwrap_or_else(|| text(StatusCode::NOT_FOUND, "no such page\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_are_not_sent() {
        let script = "// Says hello.\nconst f = () => {\n  // Once.\n  say(\"http://x\"); // now\n};\n\n";
        assert_eq!(lean(script), "const f = () => {\nsay(\"http://x\"); // now\n};\n");
    }

    #[test]
    fn only_the_assets_of_pages_are_served_and_they_are_cached_permanently() {
        let single = ["console.js", "terminal.js", "terminal.css"].into_iter().filter_map(module);
        for path in scripts().into_iter().chain([style(), icon()]).chain(single) {
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
