//! Uploads and downloads of 1 GiB through NGINX for each type of environment: with `largeUploads`, it passes them as they
//! arrive, and stores nothing. A server that keeps no file takes the place of the file browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::nginx::Nginx;

const NAMESPACE: &str = "tenant-uploads";
/// A Template of each type. The other types of virtual machines have the same Ingress.
const TEMPLATES: [&str; 3] = ["vm", "container", "standalone"];
const SIZE: usize = 1 << 30;
const CHUNK: usize = 64 << 10;
/// The maximum memory of NGINX, in KiB.
const MEMORY: u64 = 64 << 10;

/// A chunk of the file: its number, repeated.
fn chunk(number: usize) -> Vec<u8> {
    number.to_le_bytes().repeat(CHUNK / size_of::<usize>())
}

fn send_file(to: &mut impl Write, from: usize) -> Result<()> {
    (from..SIZE / CHUNK).try_for_each(|number| to.write_all(&chunk(number)).context("sent"))
}

/// Reads the file, and counts its chunks.
fn receive_file(from: &mut impl Read, received: &AtomicUsize) -> Result<()> {
    let mut read = vec![0; CHUNK];
    for number in 0..SIZE / CHUNK {
        from.read_exact(&mut read)?;
        ensure!(read == chunk(number), "another chunk {number}");
        received.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads a head. Returns its first line.
fn head(from: &mut impl BufRead) -> Result<String> {
    let mut lines = from.lines();
    let first = lines.next().context("a head")??;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    Ok(first)
}

/// A server that takes the file with PUT, and sends it otherwise. Returns its address and the number of chunks that it
/// has received.
fn file_browser() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (at, received) = (listener.local_addr().expect("its address"), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&received);
    let answer = move |mut stream: TcpStream| -> Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        if head(&mut reader)?.starts_with("PUT ") {
            receive_file(&mut reader, &count)?;
            stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
            return Ok(());
        }
        stream.write_all(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nConnection: close\r\n\r\n").as_bytes(),
        )?;
        send_file(&mut stream, 0)
    };
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // NGINX ends an attempt that the login or a limit refuses.
            thread::spawn(move || drop(answer(stream)));
        }
    });
    (at, received)
}

/// A login that admits every request.
fn login() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let clone = stream.try_clone().expect("a socket");
            if head(&mut BufReader::new(clone)).is_ok() {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        }
    });
    at
}

/// Starts NGINX for the Ingresses of the namespace, with this server behind all of them.
fn nginx(lab: &Lab, folder: &Path, port: u16, backend: SocketAddr) -> (Nginx, SocketAddr) {
    // A separate loopback address: no other test listens there.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 98, high, low], port));
    let ingresses = lab.list("ingresses", NAMESPACE);
    assert_eq!(ingresses.len(), TEMPLATES.len());
    let folder = folder.join(format!("nginx-{port}"));
    let backend = |_: &str, _: &Value| Ok(backend.to_string());
    let nginx = Nginx::start(&folder, address, false, Some(login()), &ingresses, backend).expect("nginx");
    (nginx, address)
}

/// Begins a request to a URL of a machine. Returns the connection.
fn begin(nginx: SocketAddr, method: &str, url: &str, length: usize) -> Result<TcpStream> {
    let (host, path) = url.strip_prefix("https://").and_then(|url| url.split_once('/')).context("a URL")?;
    let mut stream = TcpStream::connect(nginx)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "{method} /{path}file HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

/// Uploads the file. The machine receives its first chunk before the second one is sent.
fn upload(nginx: SocketAddr, url: &str, received: &AtomicUsize) -> Result<()> {
    let mut stream = begin(nginx, "PUT", url, SIZE)?;
    let before = received.load(Ordering::Relaxed);
    stream.write_all(&chunk(0))?;
    wait_until(PATIENCE, || {
        let is_passed = received.load(Ordering::Relaxed) > before;
        is_passed.then_some(()).ok_or_else(|| "NGINX stores the upload".to_owned())
    });
    send_file(&mut stream, 1)?;
    let status = head(&mut BufReader::new(stream))?;
    ensure!(status.starts_with("HTTP/1.1 201 "), "{status}");
    ensure!(received.load(Ordering::Relaxed) == before + SIZE / CHUNK, "not the whole file");
    Ok(())
}

fn download(nginx: SocketAddr, url: &str) -> Result<()> {
    let mut reader = BufReader::new(begin(nginx, "GET", url, 0)?);
    let status = head(&mut reader)?;
    ensure!(status.starts_with("HTTP/1.1 200 "), "{status}");
    receive_file(&mut reader, &AtomicUsize::new(0))
}

/// The peak of the memory of a process, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// In the layout `classic`, the URL of a virtual machine is the page of the official web interface, which NGINX does not
/// serve.
fn config(large_uploads: bool) -> String {
    format!("controllers: {{instance: {{layout: perEnvironment, largeUploads: {large_uploads}}}}}\n")
}

#[test]
fn a_file_of_1_gib_passes_in_both_directions_if_large_uploads_are_on() {
    let lab = Lab::shared();
    let course = lab.course("uploads");
    let daemon = course.daemon(&config(true));
    for template in TEMPLATES {
        lab.apply(&instance("uploads", template, template));
    }
    let url = |template: &str| {
        let ready = lab.await_phase(NAMESPACE, template, "Ready");
        ready["status"]["environments"][0]["url"].as_str().expect("a URL").to_owned()
    };
    let urls = TEMPLATES.map(url);
    let folder = tempfile::TempDir::new().expect("a folder");
    let (backend, received) = file_browser();
    let (running, address) = nginx(&lab, folder.path(), 8080, backend);
    for url in &urls {
        upload(address, url, &received).unwrap_or_else(|error| panic!("{url}: {error:#}"));
        download(address, url).unwrap_or_else(|error| panic!("{url}: {error:#}"));
    }
    let used = peak(running.id());
    assert!(used < MEMORY, "NGINX used {used} KiB");
    drop((running, daemon));

    // Off: the limit of NGINX applies again, also to machines that run.
    let _daemon = course.daemon(&config(false));
    for ingress in lab.list("ingresses", NAMESPACE) {
        let name = ingress["metadata"]["name"].as_str().expect("a name");
        let size = "/metadata/annotations/nginx.ingress.kubernetes.io~1proxy-body-size";
        lab.await_value("ingresses", NAMESPACE, name, size, "");
    }
    let (_running, address) = nginx(&lab, folder.path(), 8081, backend);
    for url in &urls {
        let stream = begin(address, "PUT", url, SIZE).expect("a request");
        let status = head(&mut BufReader::new(stream)).expect("an answer");
        assert!(status.starts_with("HTTP/1.1 413 "), "{url}: {status}");
    }
}
