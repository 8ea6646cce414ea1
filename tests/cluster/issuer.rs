//! The issuer of user tokens, in place of Keycloak: an `OpenID` provider with two static documents, which the API
//! server trusts as it would trust Keycloak. Keycloak takes half a minute to start; this issuer starts at once. It
//! accepts each of its tokens as a refresh token, too, and answers with a new token for the same user.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::background::Background;
use super::certificates::Certificates;
use super::ports::Ports;

/// The client of the tokens.
pub const CLIENT: &str = "kubernetes";
/// The signature algorithm of the tokens.
pub const ALGORITHM: &str = "ES256";
/// The claims with the name and the groups of a user.
pub const NAME: &str = "preferred_username";
pub const GROUPS: &str = "groups";
/// The name of the key.
const KEY: &str = "test";
/// The lifetime of a token that is issued for another one, in seconds.
const LIFE: i64 = 3_600;
/// The length of a coordinate of the public key, in bytes.
const COORDINATE: usize = 32;

/// The URL of the issuer of a cluster.
pub fn url(ports: &Ports) -> String {
    format!("https://127.0.0.1:{}", ports.issuer.number())
}

/// A running issuer. It ends with the runtime that it was started in.
pub struct Issuer(Arc<Signer>);

/// The key that signs the tokens.
struct Signer {
    url: String,
    key: EcdsaKeyPair,
}

impl Issuer {
    /// Starts the issuer with the certificate of the API server, which is valid for this machine.
    pub fn start(background: &Background, ports: &Ports, certificates: &Certificates) -> Result<Self> {
        let (url, random) = (url(ports), SystemRandom::new());
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| anyhow!("no key"))?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        let key = key.map_err(|error| anyhow!("{error}"))?;
        let signer = Arc::new(Signer { url, key });
        let pages = Arc::new(Pages::of(Arc::clone(&signer)));
        let acceptor = acceptor(certificates)?;
        let port = ports.issuer.number();
        let listener =
            background.run(async move { TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await })??;
        background.handle().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&pages)));
            }
        });
        Ok(Self(signer))
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// A token: see [`Cluster::user_token`](super::Cluster::user_token).
    pub fn token(&self, name: &str, groups: &[&str], seconds: i64) -> Result<String> {
        self.0.token(name, &json!(groups), seconds)
    }
}

impl Signer {
    #[expect(clippy::disallowed_methods, reason = "the API server looks at its own clock, too")]
    fn token(&self, name: &str, groups: &Value, seconds: i64) -> Result<String> {
        let now = jiff::Timestamp::now().as_second();
        let header = json!({"alg": ALGORITHM, "typ": "JWT", "kid": KEY});
        let claims = json!({
            "iss": self.url, "aud": CLIENT, "sub": name, NAME: name, GROUPS: groups,
            "iat": now - 3_600, "exp": now + seconds,
        });
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| anyhow!("the token is not signed"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The response to a form with a refresh token; `None` if the form has no token. No character of a token is encoded
    /// in a form.
    fn refreshed(&self, form: &[u8]) -> Option<Value> {
        let mut fields = std::str::from_utf8(form).ok()?.split('&');
        let refresh_token = fields.find_map(|field| field.strip_prefix("refresh_token="))?;
        let claims = URL_SAFE_NO_PAD.decode(refresh_token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        let id_token = self.token(claims[NAME].as_str()?, &claims[GROUPS], LIFE).ok()?;
        Some(
            json!({"id_token": id_token, "refresh_token": refresh_token, "token_type": "Bearer", "access_token": ""}),
        )
    }
}

/// The documents of the issuer.
struct Pages {
    signer: Arc<Signer>,
    discovery: Value,
    keys: Value,
}

impl Pages {
    fn of(signer: Arc<Signer>) -> Self {
        let Signer { url, key } = &*signer;
        // A point: a byte for its format, and two coordinates.
        let (x, y) = key.public_key().as_ref()[1..].split_at(COORDINATE);
        let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
        let key =
            json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": KEY, "use": "sig", "alg": ALGORITHM});
        let discovery = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        });
        Self { discovery, keys: json!({"keys": [key]}), signer }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let (status, page) = match head.uri.path() {
            "/token" => {
                // An incomplete body has no token.
                let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
                match self.signer.refreshed(&body) {
                    Some(tokens) => (StatusCode::OK, tokens.to_string()),
                    None => (StatusCode::BAD_REQUEST, json!({"error": "invalid_grant"}).to_string()),
                }
            }
            "/.well-known/openid-configuration" => (StatusCode::OK, self.discovery.to_string()),
            "/keys" => (StatusCode::OK, self.keys.to_string()),
            _ => (StatusCode::NOT_FOUND, String::new()),
        };
        let mut response = Response::new(Full::from(page));
        *response.status_mut() = status;
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        response
    }
}

fn acceptor(certificates: &Certificates) -> Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_file(certificates.file("apiserver.crt"))?;
    let key = PrivateKeyDer::from_pem_file(certificates.file("apiserver.key"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("the certificate of the issuer")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, pages: Arc<Pages>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, std::convert::Infallible>(pages.answer(request).await) }
    });
    // A client that disconnects needs no more.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
