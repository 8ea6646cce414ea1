//! The keys of the dashboard's appearance: the name, the logo, the colors and the contact of the university.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::bound::Bound;
use super::formats::formats;
use super::keys::keys;

/// The least contrast of text with its background: 4.5 to 1 (WCAG 2.2, criterion 1.4.3).
const LEAST_CONTRAST: f64 = 4.5;
/// The maximum number of characters of a logo. Every page loads it.
const MOST_OF_LOGO: usize = 65_536;
/// The background with the least contrast in each scheme: `--quiet-back` in `assets/dashboard.css`.
const LIGHT_BACK: Color = Color([0xe7, 0xe9, 0xee]);
const DARK_BACK: Color = Color([0x2d, 0x32, 0x3c]);

keys! {
    /// The appearance of the pages.
    pub struct AppearanceConfig {
        /// The name in the heading and in the titles of the pages.
        pub name: String where NAMED = "CrownLabs".to_owned(),
        /// The logo beside the name: a data URL with an SVG or PNG image, at most 65536 characters; empty for none.
        pub logo: String as LOGO where SMALL,
        /// The color of links and main buttons in the light scheme, such as `#0b57a4`; empty for the default. Its
        /// contrast with the background must be at least 4.5 to 1.
        pub color: String as COLOR where DARK_ENOUGH,
        /// The same in the dark scheme, such as `#86bdff`.
        pub dark_color: String as COLOR where LIGHT_ENOUGH,
        /// The email address for questions, which every page shows; empty for none.
        pub contact: String as CONTACT,
    }
}

formats! {
    LOGO = "crownlabs-logo", |text| text.is_empty() || image(text).is_some(),
        "an image as data:image/svg+xml;base64,… or data:image/png;base64,…, or \"\" for none",
        "^(data:image/(svg[+]xml|png);base64,[A-Za-z0-9+/]+=*)?$";
    COLOR = "crownlabs-color", |text| text.is_empty() || Color::parse(text).is_some(),
        "a color such as #0b57a4, or \"\" for the default", "^(#[0-9A-Fa-f]{6})?$";
    CONTACT = "crownlabs-contact", is_contact,
        "an email address such as labs@example.com, or \"\" for none",
        "^([A-Za-z0-9._+-]+@[A-Za-z0-9.-]+)?$";
}

const NAMED: Bound = Bound::Other(
    |value| value.as_str()?.trim().is_empty().then(|| "it is empty".to_owned()),
    "a name such as CrownLabs",
);
const SMALL: Bound = Bound::Other(
    |value| {
        let length = value.as_str()?.len();
        (length > MOST_OF_LOGO).then(|| format!("it has {length} characters"))
    },
    "at most 65536 characters",
);
const DARK_ENOUGH: Bound = Bound::Other(|value| faint(value, LIGHT_BACK), "a darker color");
const LIGHT_ENOUGH: Bound = Bound::Other(|value| faint(value, DARK_BACK), "a lighter color");

impl AppearanceConfig {
    /// Returns the content type and the content of the logo; `None` if none is configured.
    pub fn logo_image(&self) -> Option<(&'static str, Vec<u8>)> {
        image(&self.logo)
    }
}

/// A color: its red, green and blue parts in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Color([u8; 3]);

impl Color {
    /// Parses a text such as `#0b57a4`.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        let is_hex = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// Returns the relative luminance (WCAG 2.2), from 0 for black to 1 for white.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Returns the contrast ratio (WCAG 2.2), from 1 to 21.
    fn contrast(self, other: Self) -> f64 {
        let (one, other) = (self.luminance(), other.luminance());
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([red, green, blue]) = self;
        write!(formatter, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// Returns the problem with a color whose contrast with the background is too low.
fn faint(value: &Value, back: Color) -> Option<String> {
    let color = Color::parse(value.as_str()?)?;
    let contrast = color.contrast(back);
    // Rounded down, so that a contrast below the limit is never shown as the limit.
    let shown = (contrast * 100.0).floor() / 100.0;
    (contrast < LEAST_CONTRAST).then(|| {
        format!("the contrast of {color} with the background {back} is {shown} to 1, and 4.5 to 1 is needed")
    })
}

/// Returns the content type and the content of a data URL.
fn image(text: &str) -> Option<(&'static str, Vec<u8>)> {
    let types = ["image/svg+xml", "image/png"];
    let rest = text.strip_prefix("data:")?;
    let of_type = |name: &'static str| Some((name, rest.strip_prefix(name)?.strip_prefix(";base64,")?));
    let (name, encoded) = types.into_iter().find_map(of_type)?;
    let content = STANDARD.decode(encoded).ok()?;
    (!content.is_empty()).then_some((name, content))
}

/// Whether a text is empty or an address that a link can contain without encoding.
fn is_contact(text: &str) -> bool {
    let is_plain = |part: &str, signs: &[u8]| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(&byte))
    };
    let parts = text.split_once('@');
    text.is_empty() || parts.is_some_and(|(user, host)| is_plain(user, b"._+-") && is_plain(host, b".-"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The problem of a bound with a value.
    fn problem(bound: &Bound, value: &str) -> Option<String> {
        bound.problem(&json!(value))
    }

    #[test]
    fn the_contrast_of_black_and_white_is_21_and_of_equal_colors_1() {
        let [black, white, grey] =
            ["#000000", "#ffffff", "#767676"].map(|text| Color::parse(text).expect("a color"));
        assert_eq!(format!("{:.2} {:.2}", black.contrast(white), white.contrast(white)), "21.00 1.00");
        // The lightest grey that is readable on white.
        assert_eq!(format!("{:.2}", grey.contrast(white)), "4.54");
    }

    #[test]
    fn a_color_without_contrast_is_rejected_in_its_scheme() {
        for (light, dark, accepted) in [
            ("", "", [true, true]),
            ("#0b57a4", "#86bdff", [true, true]),
            ("#86bdff", "#0b57a4", [false, false]),
            ("#000000", "#000000", [true, false]),
            ("#ffffff", "#ffffff", [false, true]),
        ] {
            let found = [problem(&DARK_ENOUGH, light), problem(&LIGHT_ENOUGH, dark)];
            assert_eq!(found.map(|problem| problem.is_none()), accepted, "{light} {dark}");
        }
        let white = problem(&DARK_ENOUGH, "#ffffff").expect("a problem");
        assert!(white.starts_with("the contrast of #ffffff with the background #e7e9ee is 1.2"), "{white}");
    }

    #[test]
    fn the_backgrounds_are_those_of_the_style_sheet() {
        let style = include_str!("../../assets/dashboard.css");
        for back in [LIGHT_BACK, DARK_BACK] {
            assert!(style.contains(&format!("--quiet-back: {back};")), "{back}");
        }
    }

    #[test]
    fn formats_accept_colors_images_and_addresses() {
        for (format, text, is_valid) in [
            (&COLOR, "", true),
            (&COLOR, "#0B57a4", true),
            (&COLOR, "#+b57a4", false),
            (&COLOR, "0b57a4", false),
            (&COLOR, "#fff", false),
            (&LOGO, "", true),
            (&LOGO, "data:image/svg+xml;base64,PHN2Zy8+", true),
            (&LOGO, "data:image/png;base64,iVBORw==", true),
            (&LOGO, "data:image/png;base64,", false),
            (&LOGO, "data:image/png;base64,?", false),
            (&LOGO, "data:text/html;base64,PHN2Zy8+", false),
            (&LOGO, "https://example.com/logo.svg", false),
            (&CONTACT, "", true),
            (&CONTACT, "labs+help@example.com", true),
            (&CONTACT, "labs", false),
            (&CONTACT, "labs@example.com?cc=x", false),
            (&CONTACT, "a@b@c", false),
        ] {
            assert_eq!((format.accepts)(text), is_valid, "{} {text:?}", format.name);
        }
    }

    #[test]
    fn a_name_is_required_and_a_large_logo_is_rejected() {
        assert_eq!(problem(&NAMED, "Labs"), None);
        assert_eq!(problem(&NAMED, "  ").as_deref(), Some("it is empty"));
        assert_eq!(problem(&SMALL, &"x".repeat(65_536)), None);
        assert_eq!(problem(&SMALL, &"x".repeat(65_537)).as_deref(), Some("it has 65537 characters"));
    }

    #[test]
    fn the_logo_is_decoded() {
        let logo = |logo: &str| AppearanceConfig { logo: logo.to_owned(), ..Default::default() }.logo_image();
        assert_eq!(logo("data:image/svg+xml;base64,PHN2Zy8+"), Some(("image/svg+xml", b"<svg/>".to_vec())));
        assert_eq!(logo(""), None);
    }
}
