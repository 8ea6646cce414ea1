//! The faults that are reported for the queries of Prometheus.

use super::*;

#[test]
fn queries_of_prometheus_are_checked() {
    let text = "integrations:
  prometheus:
    url: https://prometheus.example.com/
    timeout: 0s
    queryStep: 500ms
    queries:
      nginxData: requests{service=%q}
      bastionSshData: sum(connections{ip=%q})
      webSshData: 'connections{ip=\"%d\"}'
      webSshAvailable: ' '
      openAvailable: count(up{
      openData: max(open{ip=%q})
";
    let service = "expected a counter with the namespace and the Service, in this order, as \
                   requests{namespace=%q, service=%q}, or \"\" for none";
    let address = "expected a counter with the IP address, as connections{ip=%q}, or with the namespace and the \
                   Instance, as connections{namespace=%q, instance=%q}, or \"\" for none";
    let queries = "integrations.prometheus.queries";
    let expected = [
        "f.yaml:6: integrations.prometheus.timeout: 0s is too short; expected more than 0s".to_owned(),
        "f.yaml:7: integrations.prometheus.queryStep: 500ms is not valid; expected whole seconds, from 1s to 1h"
            .to_owned(),
        format!("f.yaml:9: {queries}.nginxData: it has 1 verbs (%s or %q); {service}"),
        format!(
            "f.yaml:10: {queries}.bastionSshData: it is not a metric name with label matchers in braces \
             (the metric name is not followed by {{); {address}"
        ),
        format!("f.yaml:11: {queries}.webSshData: %d is not supported; use %s, %q, %v or %%; {address}"),
        format!(
            "f.yaml:12: {queries}.webSshAvailable: webSshData is given and its query of availability is empty; \
             expected a query such as count(up{{container=\"webssh\"}}), or an empty query of data"
        ),
        format!(
            "f.yaml:13: {queries}.openAvailable: {{ is not closed; expected a query such as \
             count(up{{container=\"webssh\"}}), or an empty query of data"
        ),
        format!(
            "f.yaml:14: {queries}.openData: it is not a metric name with label matchers in braces \
             (the metric name is not followed by {{); expected a gauge with the IP address, as open{{ip=%q}}, or \
             with the namespace and the Instance, as open{{namespace=%q, instance=%q}}, or \"\" for none"
        ),
    ];
    assert_eq!(faults_below(text), expected);
    let off = "queries: {nginxData: '', bastionSshData: '', webSshData: ''}";
    let expected = "f.yaml:3: integrations.prometheus.queries: all queries of data are empty; \
                    expected at least one, because otherwise every Instance would seem to be unused";
    assert_eq!(
        faults_below(&format!("integrations: {{prometheus: {{url: 'http://p', {off}}}}}\n")),
        [expected]
    );
    // Without a server, nothing is required.
    parsed(&format!("integrations: {{prometheus: {{{off}}}}}\n"));
}

#[test]
fn queries_that_prometheus_cannot_read_are_refused_with_their_line() {
    let text = "integrations:
  prometheus:
    queries:
      nginxAvailable: count(up{service=\"ingress\"
      bastionSshAvailable: 'count(up{container=~\"bastion|)\"})'
      webSshData: connections{destination_ip=~\"(%s\"}
";
    let queries = "integrations.prometheus.queries";
    let available = "expected a query such as count(up{container=\"webssh\"}), or an empty query of data";
    let address = "expected a counter with the IP address, as connections{ip=%q}, or with the namespace and the \
                   Instance, as connections{namespace=%q, instance=%q}, or \"\" for none";
    let expected = [
        format!("f.yaml:6: {queries}.nginxAvailable: {{ is not closed; {available}"),
        format!(
            "f.yaml:7: {queries}.bastionSshAvailable: the regular expression of container is invalid: unopened \
             group; {available}"
        ),
        format!(
            "f.yaml:8: {queries}.webSshData: the regular expression of destination_ip is invalid: unclosed \
             group; {address}"
        ),
    ];
    assert_eq!(faults_below(text), expected);
    // The availability query of a source that is off is not checked.
    parsed("integrations: {prometheus: {queries: {webSshAvailable: 'count(up{', webSshData: ''}}}\n");
}

#[test]
fn open_connections_are_queried_where_connections_are_counted_with_the_same_availability() {
    let open = |queries: &str| {
        let config = parsed(&format!("integrations: {{prometheus: {{queries: {{{queries}}}}}}}\n"));
        let source = config.integrations.prometheus.queries.sources()[3];
        (source.name, source.available.to_owned(), source.data.to_owned())
    };
    let data = "bastion_ssh_open_connections{destination_ip=%q}";
    let is = |available: &str, data: &str| ("open", available.to_owned(), data.to_owned());
    assert_eq!(open(""), is(r#"count(up{container="bastion-operator-tracker-sidecar"})"#, data));
    assert_eq!(open("bastionSshAvailable: sum(running)"), is("sum(running)", data));
    assert_eq!(open("bastionSshData: ''"), is(r#"count(up{container="webssh"})"#, data));
    assert_eq!(open("openAvailable: sum(own)"), is("sum(own)", data));
    assert_eq!(open("openData: ''").2, "");
    assert_eq!(
        open("bastionSshData: '', webSshData: ''"),
        is("", ""),
        "without a bastion nothing is missing"
    );
}
