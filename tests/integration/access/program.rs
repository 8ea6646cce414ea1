//! oauth2-proxy as the kubelet would start it: with the objects that the daemon has written to the cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use super::browser::{Answer, Cookies, Request};
use cluster::oauth2_proxy::OAuth2Proxy;

/// A running proxy of an Instance.
pub struct Program {
    server: OAuth2Proxy,
    _files: TempDir,
}

impl Program {
    /// Starts the container of a Deployment whose volume is a Secret.
    pub fn start(deployment: &Value, secret: &Value) -> Self {
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let data = |key: &Value| STANDARD.decode(text(&secret["data"][text(key)])).expect("base64");
        // The volume is the Secret, with some of its keys as files.
        let volume = &pod["volumes"][0];
        assert_eq!(volume["name"], container["volumeMounts"][0]["name"]);
        assert_eq!(volume["secret"]["secretName"], secret["metadata"]["name"]);
        let files = tempfile::tempdir().expect("a folder");
        for item in volume["secret"]["items"].as_array().expect("files") {
            std::fs::write(files.path().join(text(&item["path"])), data(&item["key"])).expect("written");
        }
        let folder = text(&container["volumeMounts"][0]["mountPath"]);
        let here = files.path().display().to_string();
        let arguments = container["args"].as_array().expect("arguments").iter();
        let arguments: Vec<String> = arguments
            .map(|argument| text(argument).replace(&format!("={folder}/"), &format!("={here}/")))
            .collect();
        let variable = &container["env"][0];
        let reference = &variable["valueFrom"]["secretKeyRef"];
        assert_eq!(reference["name"], secret["metadata"]["name"]);
        let (name, value) =
            (text(&variable["name"]), String::from_utf8(data(&reference["key"])).expect("text"));
        let probe = text(&container["readinessProbe"]["httpGet"]["path"]);
        let server = OAuth2Proxy::start(&arguments, &[(&name, &value)], &probe).expect("oauth2-proxy");
        Self { server, _files: files }
    }

    /// Answers a request for a path with a query, which ingress-nginx passes on as a request to `host`.
    pub fn answer(&self, host: &str, target: &str, cookies: &Cookies) -> Answer {
        let headers = [
            ("Host", host),
            ("X-Real-IP", "192.0.2.7"),
            ("X-Forwarded-For", "192.0.2.7"),
            ("X-Forwarded-Host", host),
            ("X-Forwarded-Port", "443"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Scheme", "https"),
            ("X-Scheme", "https"),
        ];
        Request { headers: &headers, cookies, form: None }.send(&format!("{}{target}", self.server.url()))
    }
}
