//! The pages that Connect opens: `DASHBOARD=1`. The demo has no node that runs machines, so each page names the desktop or the
//! application that a cluster shows there.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use cluster::Cluster;

/// The longest time to wait for a request.
const LIMIT: Duration = Duration::from_secs(10);

/// Serves the pages at a port of this machine until the process ends.
pub fn serve(cluster: &Cluster, port: u16) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("port {port}"))?;
    let program = cluster.kubectl().get_program().to_owned();
    let objects = Objects { program, kubeconfig: cluster.admin_kubeconfig().to_owned() };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Err(error) = answer(&stream, &objects) {
                eprintln!("a page of a machine: {error:#}");
            }
        }
    });
    Ok(())
}

/// Reads a request and sends the page of its path.
fn answer(stream: &TcpStream, objects: &Objects) -> Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    let (mut reader, mut request, mut header) = (BufReader::new(stream), String::new(), String::new());
    reader.read_line(&mut request)?;
    // Unread headers would reset the connection. An empty line ends them.
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, content) = match objects.page(path)? {
        Some(content) => ("200 OK", content),
        None => ("404 Not Found", "<h1>This machine does not exist</h1>".to_owned()),
    };
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>A machine of the demo</title>\n\
         <style>:root {{ color-scheme: light dark; font: 1.1rem/1.6 system-ui }} \
         main {{ max-width: 40rem; margin: 15vh auto; padding: 0 1rem }}</style>\n<main>{content}</main>\n</html>\n"
    );
    let mut writer = stream;
    write!(
        writer,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )?;
    Ok(())
}

/// Reads objects of the cluster.
struct Objects {
    program: OsString,
    kubeconfig: PathBuf,
}

impl Objects {
    /// The content of the page for a path such as `/instance/UID/app/`; `None` without such an Instance.
    fn page(&self, path: &str) -> Result<Option<String>> {
        let mut parts = path.split('/').skip(2);
        let (uid, part) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let list = self.get(&["instances.crownlabs.polito.it", "--all-namespaces"])?;
        let mut instances = list["items"].as_array().into_iter().flatten();
        let Some(instance) = instances.find(|instance| instance["metadata"]["uid"] == uid) else {
            return Ok(None);
        };
        let reference = &instance["spec"]["template.crownlabs.polito.it/TemplateRef"];
        let [namespace, name] = ["namespace", "name"].map(|key| reference[key].as_str().unwrap_or_default());
        let template = self.get(&["templates.crownlabs.polito.it", "--namespace", namespace, name])?;
        let environments = template["spec"]["environmentList"].as_array().context("environments")?;
        let of_path = environments.iter().find(|environment| environment["name"] == part);
        let environment = of_path.or(environments.first()).context("an environment")?;
        Ok(Some(content(instance, &template, environment)))
    }

    fn get(&self, arguments: &[&str]) -> Result<Value> {
        let mut kubectl = Command::new(&self.program);
        kubectl.arg("--kubeconfig").arg(&self.kubeconfig).args(["get", "--output", "json"]).args(arguments);
        let output = kubectl.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// Names the desktop or the application of an environment.
fn content(instance: &Value, template: &Value, environment: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let shown = match environment["environmentType"].as_str() {
        Some("Standalone") => "the web application",
        Some("Container") => "the desktop of the container",
        _ => "the desktop of the virtual machine",
    };
    format!(
        "<h1>{}</h1>\n<p>In a cluster, this address shows {shown} of the Template <em>{}</em>, with the image <code>{}</code>.</p>\n\
         <p>The demo has a control plane, but no node that runs machines. <code>docs/quickstart.md</code> runs one on a real node.</p>",
        text(&instance["metadata"]["name"]),
        text(&template["spec"]["prettyName"]),
        text(&environment["image"])
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
