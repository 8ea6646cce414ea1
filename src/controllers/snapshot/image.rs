//! The name of the image of a snapshot: `<registry>/<tenant>/<image>:<time>`.

use jiff::Timestamp;

use crate::api::image::is_repository;

/// The longest name that registries and container runtimes accept, in characters without the tag.
const LIMIT: usize = 255;

/// The path of the repositories of a Tenant: the letters and digits of its name, in lower case.
pub fn directory(tenant: &str) -> String {
    tenant.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The full name of an image that is made at `now`.
///
/// # Errors
/// If registries would reject the name. The message explains why.
pub fn destination(registry: &str, tenant: &str, image: &str, now: Timestamp) -> Result<String, String> {
    if !is_repository(image) {
        return Err(format!(
            "image name {image:?} is not valid in a registry: use lower-case letters and digits, with single \
             dots, dashes or underscores between them, and no tag, because the tag is the time"
        ));
    }
    let name = format!("{registry}/{}/{image}", directory(tenant));
    if name.len() > LIMIT {
        return Err(format!(
            "image name {image:?} is too long: {name} has {} characters, at most {LIMIT} are allowed",
            name.len()
        ));
    }
    Ok(format!("{name}:{}", now.strftime("%Y%m%dt%H%M%S")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::now;

    #[test]
    fn an_image_is_named_after_tenant_name_and_time() {
        let now: Timestamp = now();
        let named = |tenant: &str, image: &str| destination("r.example.org:5000/vm", tenant, image, now);
        assert_eq!(
            named("John.Doe-42", "my-image").as_deref(),
            Ok("r.example.org:5000/vm/johndoe42/my-image:20260304t050607")
        );
        assert!(named("ada", "a/b").is_ok());
        for image in ["", "My", "a:b", "a b", "../ada", "a//b", "-a"] {
            assert!(named("ada", image).unwrap_err().contains("not valid in a registry"), "{image}");
        }
        let length = LIMIT - "r.example.org:5000/vm/ada/".len();
        assert!(named("ada", &"a".repeat(length)).is_ok());
        assert!(named("ada", &"a".repeat(length + 1)).unwrap_err().contains("has 256 characters"));
    }
}
