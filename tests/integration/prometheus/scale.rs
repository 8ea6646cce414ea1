//! The number of requests for 5,000 machines.

use super::{DAY, HOUR, MINUTE, NOW, by_address, by_name, client, end_of_step, scraped, seen};
use cluster::prometheus::{PrometheusServer, Samples};

const MACHINES: u32 = 5_000;

fn address(machine: u32) -> String {
    format!("10.{}.{}.{}", machine >> 16, (machine >> 8) & 255, machine & 255)
}

/// The time of a machine's last use, which differs for each source.
fn used(machine: u32, source: i64) -> i64 {
    NOW - 13 * DAY + i64::from(machine) * 200 + source * HOUR
}

fn samples() -> Samples {
    let mut samples = Samples::default();
    let targets = [
        r#"service="ingress-nginx-external-controller-metrics""#,
        r#"container="bastion-operator-tracker-sidecar""#,
        r#"container="webssh""#,
    ];
    for target in targets {
        samples.series(&format!("up{{{target}}}"), scraped(NOW - 15 * DAY, NOW, |_| 1));
    }
    for machine in 0..MACHINES {
        let ip = address(machine);
        let series = [
            format!(
                "nginx_ingress_controller_requests{{exported_namespace=\"tenant-{}\",exported_service=\"lab-{machine}\"}}",
                machine % 100
            ),
            format!("bastion_ssh_connections{{destination_ip=\"{ip}\"}}"),
            format!("bastion_web_ssh_connections{{destination_ip=\"{ip}\"}}"),
        ];
        for (series, source) in series.iter().zip(0..) {
            let time = used(machine, source);
            samples.series(series, [(time - MINUTE, 3), (time, 4), (time + MINUTE, 4)]);
        }
        // Every second machine had a session of half an hour that has ended.
        if machine % 2 == 0 {
            let open = format!("bastion_ssh_open_connections{{destination_ip=\"{ip}\"}}");
            samples.series(&open, scraped(used(machine, 3) - HOUR / 2, used(machine, 3), |_| 1));
        }
    }
    samples
}

#[tokio::test]
async fn one_round_for_5000_machines_takes_at_most_60_requests() {
    let server = PrometheusServer::start(&samples()).expect("Prometheus starts");
    // The machine of the test may be busy.
    let client = client(&server.url(), "    timeout: 1m\n");
    let before = server.requests().expect("a count");
    let activity = seen(&client, NOW - 14 * DAY).await;
    let requests = server.requests().expect("a count") - before;
    assert_eq!(activity.problems(), [""; 0]);
    assert!((1..=60).contains(&requests), "{requests}");
    for machine in 0..MACHINES {
        let (web, open) = (end_of_step(used(machine, 2)), end_of_step(used(machine, 3)));
        let last = if machine % 2 == 0 { (open, "open") } else { (web, "webSsh") };
        assert_eq!(by_address(&activity, &address(machine)), Some(last), "{machine}");
        let (namespace, instance) = (format!("tenant-{}", machine % 100), format!("lab.{machine}"));
        let ingress = end_of_step(used(machine, 0));
        assert_eq!(by_name(&activity, &namespace, &instance, &[]), Some(ingress), "{machine}");
    }
    let before = server.requests().expect("a count");
    assert!(seen(&client, NOW - HOUR).await.is_complete());
    assert_eq!(server.requests().expect("a count") - before, 11, "a round for an hour");
}
