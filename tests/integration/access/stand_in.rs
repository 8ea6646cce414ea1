//! A stand-in for oauth2-proxy, which is not built here: it does what the documentation of that program says of the options
//! that the daemon gives it, and refuses every other option. Its container is what the daemon has written to the cluster.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use ring::{digest, hmac};
use serde_json::Value;

use super::browser::{Answer, Cookies, escaped, query, request};

/// The options that it knows: those of the documentation that the daemon uses.
const OPTIONS: [&str; 19] = [
    "http-address",
    "reverse-proxy",
    "upstream",
    "provider",
    "oidc-issuer-url",
    "client-id",
    "client-secret-file",
    "scope",
    "code-challenge-method",
    "skip-provider-button",
    "oidc-email-claim",
    "authenticated-emails-file",
    "proxy-prefix",
    "redirect-url",
    "cookie-name",
    "cookie-path",
    "cookie-expire",
    "cookie-samesite",
    "session-cookie-minimal",
];

/// A proxy that is configured as a container.
pub struct StandIn {
    options: BTreeMap<String, String>,
    /// The files that are mounted into the container.
    files: BTreeMap<String, String>,
    key: Vec<u8>,
    login: String,
    token: String,
}

impl StandIn {
    /// The proxy of a Deployment and a Secret.
    pub fn of(deployment: &Value, secret: &Value) -> Self {
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let arguments = container["args"].as_array().expect("arguments");
        let options: BTreeMap<String, String> = arguments
            .iter()
            .map(|argument| {
                let argument = text(argument);
                let (name, value) = argument.trim_start_matches("--").split_once('=').expect("a value");
                assert!(OPTIONS.contains(&name), "unknown option {name}");
                (name.to_owned(), value.to_owned())
            })
            .collect();
        let data = |key: &Value| {
            let bytes: k8s_openapi::ByteString =
                serde_json::from_value(secret["data"][text(key)].clone()).expect("base64");
            String::from_utf8(bytes.0).expect("text")
        };
        // The volume is the Secret, with some of its keys as files.
        let volume = &pod["volumes"][0];
        assert_eq!(volume["name"], container["volumeMounts"][0]["name"]);
        assert_eq!(volume["secret"]["secretName"], secret["metadata"]["name"]);
        let folder = text(&container["volumeMounts"][0]["mountPath"]);
        let items = volume["secret"]["items"].as_array().expect("files").iter();
        let files =
            items.map(|item| (format!("{folder}/{}", text(&item["path"])), data(&item["key"]))).collect();
        let variable = &container["env"][0];
        assert_eq!(variable["name"], "OAUTH2_PROXY_COOKIE_SECRET");
        let reference = &variable["valueFrom"]["secretKeyRef"];
        assert_eq!(reference["name"], secret["metadata"]["name"]);
        let key = URL_SAFE.decode(data(&reference["key"])).expect("a key in base64");
        assert!([16, 24, 32].contains(&key.len()), "the key of AES has {} bytes", key.len());
        let discovery = format!("{}/.well-known/openid-configuration", options["oidc-issuer-url"]);
        let discovered: Value =
            serde_json::from_str(&request(&discovery, &Cookies::new(), None).body).expect("JSON");
        assert_eq!(discovered["issuer"], options["oidc-issuer-url"]);
        let (login, token) =
            (text(&discovered["authorization_endpoint"]), text(&discovered["token_endpoint"]));
        Self { options, files, key, login, token }
    }

    fn option(&self, name: &str) -> &str {
        self.options.get(name).unwrap_or_else(|| panic!("option {name} is needed"))
    }

    fn file(&self, option: &str) -> &str {
        let path = self.option(option);
        self.files.get(path).unwrap_or_else(|| panic!("{path} is not mounted"))
    }

    /// A text that only this proxy can have signed.
    fn signed(&self, text: &str) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.key), text.as_bytes());
        format!("{}.{}", URL_SAFE_NO_PAD.encode(text), URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    /// The text, if this proxy has signed it.
    fn verified(&self, signed: &str) -> Option<String> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(signed.split('.').next()?).ok()?).ok()?;
        (self.signed(&text) == signed).then_some(text)
    }

    /// Whether the file of users has this one.
    fn is_allowed(&self, user: &str) -> bool {
        self.file("authenticated-emails-file").lines().any(|line| line.trim().eq_ignore_ascii_case(user))
    }

    /// Answers a request for a path with a query.
    pub fn answer(&self, target: &str, cookies: &Cookies) -> Answer {
        let path = target.split('?').next().unwrap_or_default();
        match path.strip_prefix(self.option("proxy-prefix")) {
            Some("/auth") => {
                let user = cookies.get(self.option("cookie-name")).and_then(|cookie| self.verified(cookie));
                let passes = user.is_some_and(|user| self.is_allowed(&user));
                Answer::text(if passes { 202 } else { 401 }, "")
            }
            Some("/start") => self.start(&query(target)),
            Some("/callback") => self.callback(&query(target), cookies),
            _ => panic!("{target} is not a path of the proxy"),
        }
    }

    /// The name of the cookie that a login begins with, and ends with.
    fn csrf(&self) -> String {
        format!("{}_csrf", self.option("cookie-name"))
    }

    fn start(&self, query: &BTreeMap<String, String>) -> Answer {
        let back = query.get("rd").filter(|back| back.starts_with('/')).expect("a path to return to");
        let state = self.signed(back);
        assert_eq!(self.option("code-challenge-method"), "S256");
        let challenge = digest::digest(&digest::SHA256, self.verifier(&state).as_bytes());
        let location = format!(
            "{}?response_type=code&client_id={}&redirect_uri={}&scope={}&state={}&code_challenge={}\
             &code_challenge_method=S256",
            self.login,
            escaped(self.option("client-id")),
            escaped(self.option("redirect-url")),
            escaped(self.option("scope")),
            escaped(&state),
            URL_SAFE_NO_PAD.encode(challenge.as_ref()),
        );
        Answer { cookies: vec![(self.csrf(), state)], ..Answer::redirect(location) }
    }

    /// The verifier of the code of a login (RFC 7636).
    fn verifier(&self, state: &str) -> String {
        self.signed(&format!("verifier of {state}")).replace('.', "-")[..64].to_owned()
    }

    fn callback(&self, query: &BTreeMap<String, String>, cookies: &Cookies) -> Answer {
        let state = &query["state"];
        let Some(back) = self.verified(state).filter(|_| cookies.get(&self.csrf()) == Some(state)) else {
            return Answer::text(403, "the login was not begun in this browser");
        };
        let form = format!(
            "grant_type=authorization_code&code={}&redirect_uri={}&client_id={}&client_secret={}&code_verifier={}",
            escaped(query.get("code").unwrap_or_else(|| panic!("{query:?}"))),
            escaped(self.option("redirect-url")),
            escaped(self.option("client-id")),
            escaped(self.file("client-secret-file")),
            escaped(&self.verifier(state)),
        );
        let answer = request(&self.token, &Cookies::new(), Some(&form));
        assert_eq!(answer.status, 200, "{answer:?}");
        let tokens: Value = serde_json::from_str(&answer.body).expect("JSON");
        // The token comes from the server itself, so its signature says nothing more.
        let claims = tokens["id_token"].as_str().and_then(|token| token.split('.').nth(1)).expect("a token");
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
        let user = claims[self.option("oidc-email-claim")].as_str().expect("the claim");
        if !self.is_allowed(user) {
            return Answer::text(403, "this user is not allowed");
        }
        let cookie = (self.option("cookie-name").to_owned(), self.signed(user));
        Answer { cookies: vec![cookie], ..Answer::redirect(back) }
    }
}
