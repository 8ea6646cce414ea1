//! The appearance of the university: its name, its contact, its colors as a style sheet, and its logo.

use axum::response::Response;
use http::HeaderValue;
use http::header::CONTENT_SECURITY_POLICY;

use super::assets::{Asset, STYLE};
use crate::config::AppearanceConfig;

/// The policy of the logo: an SVG image may have styles, but neither scripts nor other content.
const LOGO_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// The appearance of the university.
#[derive(Debug)]
pub struct Brand {
    /// The name.
    pub name: String,
    /// The email address for questions; empty for none.
    pub contact: String,
    style: Option<Asset>,
    logo: Option<Asset>,
}

impl Brand {
    /// Returns the appearance of a configuration.
    pub fn of(config: &AppearanceConfig) -> Self {
        let style = style(&config.color, &config.dark_color);
        let logo = |(content_type, content)| Asset::new("logo", content_type, false, content);
        Self {
            name: config.name.clone(),
            contact: config.contact.clone(),
            style: (!style.is_empty()).then(|| Asset::new("brand.css", STYLE, false, style)),
            logo: config.logo_image().map(logo),
        }
    }

    /// Returns the path of the style sheet with the colors, which follows the style of all pages.
    pub fn style(&self) -> Option<&str> {
        self.style.as_ref().map(|style| style.path.as_str())
    }

    /// Returns the path of the logo.
    pub fn logo(&self) -> Option<&str> {
        self.logo.as_ref().map(|logo| logo.path.as_str())
    }

    /// Returns the style sheet or the logo at a path below `/assets/`.
    pub fn answer(&self, path: &str) -> Option<Response> {
        let logo = || {
            let mut answer = self.logo.as_ref()?.answer(path)?;
            let policy = HeaderValue::from_static(LOGO_POLICY);
            answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
            Some(answer)
        };
        self.style.as_ref().and_then(|style| style.answer(path)).or_else(logo)
    }
}

impl Default for Brand {
    fn default() -> Self {
        Self::of(&AppearanceConfig::default())
    }
}

/// Returns a style sheet that replaces the color of links and main buttons in each scheme; empty if none is configured.
fn style(light: &str, dark: &str) -> String {
    let schemes = [("not all and ", light), ("", dark)];
    let scheme = |(not, color): (&str, &str)| {
        let rule = format!("@media {not}(prefers-color-scheme: dark) {{ :root {{ --main: {color}; }} }}\n");
        if color.is_empty() { String::new() } else { rule }
    };
    schemes.map(scheme).concat()
}

#[cfg(test)]
mod unit_tests {
    use http::StatusCode;

    use super::*;

    /// The end of a path below `/assets/`.
    fn below(path: Option<&str>) -> &str {
        path.and_then(|path| path.strip_prefix("/assets/")).expect("a path")
    }

    #[test]
    fn each_scheme_has_its_own_color() {
        let dark = "@media (prefers-color-scheme: dark) { :root { --main: #86bdff; } }\n";
        let light = "@media not all and (prefers-color-scheme: dark) { :root { --main: #0b57a4; } }\n";
        for (colors, expected) in [
            (["", ""], String::new()),
            (["#0b57a4", ""], light.to_owned()),
            (["", "#86bdff"], dark.to_owned()),
            (["#0b57a4", "#86bdff"], format!("{light}{dark}")),
        ] {
            assert_eq!(style(colors[0], colors[1]), expected);
        }
    }

    #[test]
    fn the_style_and_the_logo_are_served_and_nothing_by_default() {
        let plain = Brand::default();
        assert_eq!((plain.name.as_str(), plain.style(), plain.logo()), ("CrownLabs", None, None));
        let config = AppearanceConfig {
            color: "#0b57a4".to_owned(),
            logo: "data:image/svg+xml;base64,PHN2Zy8+".to_owned(),
            ..AppearanceConfig::default()
        };
        let brand = Brand::of(&config);
        let style = brand.answer(below(brand.style())).expect("the style");
        assert_eq!(
            (style.status(), &style.headers()["content-type"]),
            (StatusCode::OK, &HeaderValue::from_static(STYLE))
        );
        let logo = brand.answer(below(brand.logo())).expect("the logo");
        assert_eq!(logo.headers()["content-type"], "image/svg+xml");
        assert_eq!(logo.headers()["content-security-policy"], LOGO_POLICY);
        assert!(plain.answer(below(brand.logo())).is_none() && brand.answer("x/logo").is_none());
    }
}
