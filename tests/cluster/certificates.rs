//! The certificates of one test cluster: CA, API server and clients; and the key that signs service-account tokens.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// The address of the Service `kubernetes`: the first address of Services.
pub const SERVICE: &str = "10.0.0.1";

/// The CA of a cluster and the files that its servers read.
pub struct Certificates {
    dir: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A client certificate and its key, as files.
pub struct ClientFiles {
    /// PEM certificate.
    pub certificate: PathBuf,
    /// PEM key (PKCS#8).
    pub key: PathBuf,
}

impl Certificates {
    /// Creates in `dir` a CA, the API server's certificate (for loopback and its Service) and the service-account key.
    pub fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let mut params = named("crownlabs-test-ca", None)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let certificates = Self { dir: dir.to_owned(), issuer };
        certificates.write("ca.crt", &certificates.issuer.pem())?;
        certificates.server()?;
        let service_accounts = KeyPair::generate()?;
        certificates.write("service-accounts.key", &service_accounts.serialize_pem())?;
        certificates.write("service-accounts.pub", &service_accounts.public_key_pem())?;
        Ok(certificates)
    }

    /// A file of this folder, such as `ca.crt`, `apiserver.crt` or `service-accounts.key`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Issues a client certificate for the Kubernetes user `name`, who is a member of `group`.
    pub fn client(&self, name: &str, group: Option<&str>) -> Result<ClientFiles> {
        let mut params = named(name, group)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&name.replace(':', "-"), params)
    }

    fn server(&self) -> Result<()> {
        let mut params = CertificateParams::new(vec![
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "kubernetes".to_owned(),
            "kubernetes.default".to_owned(),
            "kubernetes.default.svc".to_owned(),
            SERVICE.to_owned(),
        ])?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue("apiserver", params).map(drop)
    }

    fn issue(&self, file: &str, mut params: CertificateParams) -> Result<ClientFiles> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(ClientFiles {
            certificate: self.write(&format!("{file}.crt"), &certificate.pem())?,
            key: self.write(&format!("{file}.key"), &key.serialize_pem())?,
        })
    }

    fn write(&self, name: &str, pem: &str) -> Result<PathBuf> {
        let path = self.file(name);
        fs::write(&path, pem).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

fn named(name: &str, group: Option<&str>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    Ok(params)
}
