//! The login of machines: authentication requests for one machine, as ingress-nginx sends them for each request of its page.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cluster::audit::by_agent;
use cluster::request::send;
use crownlabs::testing::{HostKey, Keys, Pass, clock};

use crate::fixtures::CONFIG;
use crate::harness::{AGENT, Bench, Figures, count, instance};

/// The number of requests per second.
const RATE: usize = 1_000;
/// The duration in seconds.
const SECONDS: usize = 20;
/// The number of browsers that send them.
const BROWSERS: usize = 20;
/// The port of the login.
const PORT: u16 = 18_089;
const SESSION_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
const HOST_KEY: [u8; 32] = [7; 32];

/// 1,000 requests per second: the processor time of one, and the requests to the API server.
pub async fn requests(figures: &mut Figures) -> Result<()> {
    let bench = Bench::start().await?;
    let [session, hosts] = ["session-key", "host-key"].map(|name| bench.dir.join(name));
    std::fs::write(&session, SESSION_KEY)?;
    std::fs::write(&hosts, HOST_KEY)?;
    let daemon = bench.daemon_with(&format!(
        "{CONFIG}controllers:\n  instance: {{websiteBaseUrl: machines.example.com, \
         access: {{daemon: {{signInUrl: \"https://labs.example.com/login/machine\"}}}}}}\n  \
         login: {{enabled: true, listen: \"127.0.0.1:{PORT}\", sessionKeyFile: \"{}\", hostKeyFile: \"{}\"}}\n",
        session.display(),
        hosts.display(),
    ))?;
    let path = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-bench/instances";
    let mark = bench.cluster.audit().mark()?;
    let made = bench.send("POST", path, &instance("page", "vm")).await?;
    bench.await_statuses(mark, 1)?;
    bench.settle()?;
    let uid = made["metadata"]["uid"].as_str().context("a uid")?;
    let label = HostKey::parse(&HOST_KEY).map_err(anyhow::Error::msg)?.label(uid, "main");
    let until = clock::now().as_second() + 3_600;
    let pass = Pass { user: "ada".to_owned(), session: "session".to_owned(), until };
    let cookie = pass.cookie(&Keys::parse(SESSION_KEY.as_bytes())?, &label).context("random numbers")?;
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let url = format!("https://{label}.machines.example.com/instance/{uid}/app/style.css");
    let ask = || -> Result<u16> {
        let headers = [("X-Original-URL", &*url), ("X-Original-Method", "GET"), ("Cookie", &*cookie)];
        let path = format!("/auth/{label}");
        Ok(send(&format!("127.0.0.1:{PORT}"), "GET", &path, &headers, "")?.status)
    };
    ensure!(ask()? == 200, "the machine cannot be opened");
    daemon.await_idle()?;
    eprintln!("{RATE} requests per second for {SECONDS} s …");
    let (mark, before, begin) = (bench.cluster.audit().mark()?, daemon.processor_seconds()?, Instant::now());
    let pause = Duration::from_secs(1) / u32::try_from(RATE / BROWSERS)?;
    std::thread::scope(|scope| {
        let browser = |_| {
            scope.spawn(|| -> Result<()> {
                for number in 1..=u32::try_from(RATE / BROWSERS * SECONDS)? {
                    ensure!(ask()? == 200, "a request was rejected");
                    std::thread::sleep((pause * number).saturating_sub(begin.elapsed()));
                }
                Ok(())
            })
        };
        let browsers: Vec<_> = (0..BROWSERS).map(browser).collect();
        browsers.into_iter().try_for_each(|browser| browser.join().expect("a browser"))
    })?;
    let rate = count(RATE * SECONDS) / begin.elapsed().as_secs_f64();
    let spent = (daemon.processor_seconds()? - before) * 1_000.0 / count(RATE * SECONDS);
    let (entries, _) = bench.cluster.audit().read(mark)?;
    let requests =
        by_agent(&entries, AGENT).filter(|entry| entry.resource != "leases" && entry.verb != "watch");
    figures.add("machine login: processor time of a request", spent, "ms", Some(1.0));
    figures.add("machine login: requests per second", rate, "", None);
    figures.add("machine login: requests to the API server", count(requests.count()), "", Some(0.0));
    figures.add("machine login: peak memory", daemon.peak_mebibytes()?, "MiB", Some(64.0));
    Ok(())
}
