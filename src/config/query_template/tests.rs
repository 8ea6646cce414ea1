use proptest::prelude::*;

use super::*;
use crate::config::PrometheusQueries;

fn service(text: &str) -> Result<QueryTemplate, TemplateError> {
    QueryTemplate::parse(text, Subject::Service)
}

fn address(text: &str) -> Result<QueryTemplate, TemplateError> {
    QueryTemplate::parse(text, Subject::Address)
}

#[test]
fn the_selector_of_all_instances() {
    let table = [
        (r"c{a=%q, b=%q}", r#"c{a!="",b!=""}"#),
        (r#" c { a = "%s" , b="%v", } "#, r#"c{a!="",b!=""}"#),
        ("c{\n  a='%s',\n  b=`%s`\n}", r#"c{a!="",b!=""}"#),
        (r#"a:b_1{a=~"%s", b=~"%s"}"#, r#"a:b_1{a!="",b!=""}"#),
        (r#"c{a="%s",b=~"%s.*"}"#, r#"c{a!="",b=~"(?:[a-z0-9.:-]+).*"}"#),
        (r#"c{a="%s",b=~"%s(-.*)?"}"#, r#"c{a!="",b=~"(?:[a-z0-9.:-]+)(-.*)?"}"#),
        // The value of = is not a regular expression.
        (r#"c{a="x.%s",b=%q}"#, r#"c{a=~"x\\.(?:[a-z0-9.:-]+)",b!=""}"#),
        (r#"c{a=~"x\\.%s",b=%q}"#, r#"c{a=~"x\\.(?:[a-z0-9.:-]+)",b!=""}"#),
        (r"c{a=~`x\.%s`,b=%q}", r#"c{a=~"x\\.(?:[a-z0-9.:-]+)",b!=""}"#),
        (r#"c{a="%s/%s"}"#, r#"c{a=~"(?:[a-z0-9.:-]+)/(?:[a-z0-9.:-]+)"}"#),
        (r#"c{a=~"[^/]*/%s/%s/\\[.*"}"#, r#"c{a=~"[^/]*/(?:[a-z0-9.:-]+)/(?:[a-z0-9.:-]+)/\\[.*"}"#),
        // Other matchers are kept, but may be quoted differently.
        (r#"c{d!~'5.."',e!="", a=%q, b=%q,f="100%%"}"#, r#"c{d!~"5..\"",e!="",a!="",b!="",f="100%"}"#),
        (r#"c{a=%q,b=%q,c="\n\t\\ü"}"#, r#"c{a!="",b!="",c="\n\t\\ü"}"#),
    ];
    for (text, selector) in table {
        assert_eq!(service(text).as_ref().map(|template| &*template.selector), Ok(selector), "{text}");
    }
}

#[test]
fn the_labels_with_the_values() {
    let simple = service(r#"c{x="1", a=%q, b="%s"}"#).unwrap();
    assert_eq!(
        (&simple.labels[..], simple.value_labels()),
        (&["a".to_owned(), "b".to_owned()][..], vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(simple.extractions().count(), 0);
    let mixed = service(r#"c{a="ns-%s", b=%q}"#).unwrap();
    assert_eq!(mixed.value_labels(), ["crownlabs_0", "b"]);
    let extraction = mixed.extractions().next().unwrap();
    assert_eq!((extraction.label, extraction.pattern), ("a", "ns-(?P<crownlabs_0>[a-z0-9.:-]+)"));
    let one = service(r#"c{a=~"h/%s/%s/.*"}"#).unwrap();
    assert_eq!(
        (&one.labels[..], one.value_labels()),
        (&["a".to_owned()][..], vec!["crownlabs_0".to_owned(), "crownlabs_1".to_owned()])
    );
    let patterns: Vec<&str> = one.extractions().map(|extraction| extraction.pattern).collect();
    assert_eq!(
        patterns,
        [
            "h/(?P<crownlabs_0>[a-z0-9.:-]+)/(?:[a-z0-9.:-]+)/.*",
            "h/(?:[a-z0-9.:-]+)/(?P<crownlabs_1>[a-z0-9.:-]+)/.*"
        ]
    );
}

#[test]
fn queries_that_cannot_cover_all_instances_are_rejected() {
    let label = |error: fn(String) -> TemplateError| error("a".to_owned());
    let table = [
        ("c{a=%q}", TemplateError::VerbCount(1)),
        ("c{a=\"x\"}", TemplateError::VerbCount(0)),
        ("c{}", TemplateError::VerbCount(0)),
        ("c{a=%q,b=%q,c=%q}", TemplateError::VerbCount(3)),
        ("c{a=%d}", TemplateError::UnknownVerb('d')),
        ("c{a=\"%\"}", TemplateError::UnknownVerb('"')),
        ("c{a=%q} / 100%", TemplateError::UnknownVerb(' ')),
        ("c{a=%[1]q}", TemplateError::UnknownVerb('[')),
        ("%s{a=%q}", TemplateError::Place('s')),
        ("c{%s=\"x\"}", TemplateError::Place('s')),
        ("c{a%s\"x\"}", TemplateError::Place('s')),
        ("c{a=%q}%s", TemplateError::Place('s')),
        ("c{a=\"\\%s\"}", TemplateError::Place('s')),
        ("c{a=\"%q\"}", TemplateError::QuotedVerb),
        ("c{a=%s}", TemplateError::BareVerb('s')),
        ("c{a=%v}", TemplateError::BareVerb('v')),
        ("c{a=\"\\x41\"}", TemplateError::Escape('x')),
        ("c{a!=%q,b=%q}", label(TemplateError::Operator)),
        ("c{a!~\"%s\",b=%q}", label(TemplateError::Operator)),
        ("c{a=%q,a=~\"%s.*\"}", label(TemplateError::TwoMatchers)),
        ("c{a=\"%s%s\"}", label(TemplateError::Ambiguous)),
        ("c{a=\"%s-%s\"}", label(TemplateError::Ambiguous)),
        ("c{a=~\"%s.*%s\"}", label(TemplateError::Ambiguous)),
        ("c{a=~\"[%s]\",b=%q}", label(TemplateError::Pattern)),
        ("c{a=~\"%s*\",b=%q}", label(TemplateError::Pattern)),
        ("c{a=~\"%s?x\",b=%q}", label(TemplateError::Pattern)),
        ("c{a=~`x\\%s`,b=%q}", label(TemplateError::Pattern)),
    ];
    for (text, error) in table {
        assert_eq!(service(text), Err(error), "{text}");
    }
    let not_selectors = [
        "",
        "c",
        "{a=%q,b=%q}",
        "sum(c{a=%q,b=%q})",
        "rate(c{a=%q,b=%q}[5m])",
        "c{a=%q,b=%q}[5m]",
        "c{a=%q,b=%q} > 0",
        "c{a=%q,b=%q} or d{a=%q,b=%q}",
        "c{a=%q b=%q}",
        "c{a=%q,b=%q",
        "c{a==%q}",
        "c{a!%q}",
        "c{a=x}",
        "c{a=\"%s",
        "c{a=\"\\",
        "c{__name__=%q,b=%q}",
        "c{1a=%q}",
        "1c{a=%q}",
        "c{\"a.b\"=%q}",
    ];
    for text in not_selectors {
        let error = service(text).unwrap_err();
        assert!(matches!(error, TemplateError::NotASelector(_) | TemplateError::Place(_)), "{text}: {error}");
    }
}

#[test]
fn regular_expressions_that_cannot_be_read_are_refused() {
    let unreadable = |label: &str, problem: &str| TemplateError::Unreadable {
        label: label.to_owned(),
        problem: problem.to_owned(),
    };
    let regular_expressions = [
        (r#"c{a=~"(%s",b=%q}"#, unreadable("a", "unclosed group")),
        (r#"c{a=%q,b=~"%s)"}"#, unreadable("b", "unopened group")),
        (r#"c{a=%q,b=%q,code=~"["}"#, unreadable("code", "unclosed character class")),
        (r#"c{a=%q,b=%q,code!~"*"}"#, unreadable("code", "repetition operator missing expression")),
        (r#"c{a=%q,b=~"%s.**"}"#, unreadable("b", "a repetition is repeated")),
    ];
    for (text, error) in regular_expressions {
        assert_eq!(service(text), Err(error), "{text}");
    }
    // The values of = and != are not regular expressions.
    assert!(service(r#"c{a="(%s",b=%q,c!="["}"#).is_ok());
}

#[test]
fn a_machine_has_one_or_two_values() {
    assert!(address("c{ip=%q}").is_ok());
    assert!(address(r#"c{target=~"%s:22"}"#).is_ok());
    assert!(address("c{namespace=%q,instance=%q}").is_ok());
    assert_eq!(address("c"), Err(TemplateError::NotASelector("the metric name is not followed by {")));
    assert_eq!(address("c{a=\"x\"}"), Err(TemplateError::VerbCount(0)));
    assert_eq!(address("c{a=%q,b=%q,c=%q}"), Err(TemplateError::VerbCount(3)));
}

#[test]
fn the_defaults_and_the_documented_queries_are_right() {
    for source in PrometheusQueries::default().sources() {
        assert!(QueryTemplate::parse(source.data, source.subject).is_ok(), "{}", source.data);
    }
    let page = include_str!("../../../docs/prometheus-queries.md");
    let mut found = 0;
    for line in page.lines().map(str::trim) {
        let Some((key, query)) = line.split_once(": ") else { continue };
        let subject = match key {
            "nginxData" => Subject::Service,
            "bastionSshData" | "webSshData" | "openData" => Subject::Address,
            _ => continue,
        };
        found += 1;
        let query = query.trim_matches('\'');
        assert!(query.is_empty() || QueryTemplate::parse(query, subject).is_ok(), "{query}");
    }
    assert!(found >= 6, "{found}");
}

#[test]
fn expressions_of_any_form_are_accepted() {
    let page = include_str!("../../../docs/prometheus-queries.md");
    let documented = page.lines().filter_map(|line| line.trim().split_once("Available: "));
    let documented: Vec<&str> = documented.map(|(_, query)| query.trim_matches('\'')).collect();
    assert!(documented.len() >= 4, "{documented:?}");
    let defaults = PrometheusQueries::default();
    let defaults = defaults.sources().map(|source| source.available.to_owned());
    for text in defaults.iter().map(String::as_str).chain(documented) {
        assert_eq!(check_expression(text), Ok(()), "{text}");
    }
    for text in [
        "up",
        "vector(1)",
        "count(up{}) or vector(0)",
        "count by (job) (rate(c{a!='x', b=~`\\d+(a|b)[^/]*?`,}[5m:1m] offset 1h)) > bool 100 % 7",
        "sum({__name__=~\"up|c\", \"a.b\"=\"}\", \"my.metric\"}) # a comment with ( and \"",
        "count(up{ # the Ingress\n  service = \"ingress\" # here\n})",
        "label_replace(up, \"a\", \"$1\", \"b\", \"(.*)\\\\.x\")",
        "count(up{a=\"(\", b!=\"[\"}) == 1",
        "\"text with ) and }\"",
    ] {
        assert_eq!(check_expression(text), Ok(()), "{text}");
    }
}

#[test]
fn expressions_that_no_prometheus_can_read_are_refused() {
    for (text, problem) in [
        ("count(up{", "{ is not closed"),
        ("count(up{a", "{ is not closed"),
        ("count(up{a=\"x\"", "{ is not closed"),
        ("count(up", "( is not closed"),
        ("count(up[5m)", "[ is not closed"),
        ("count(up))", ") closes nothing"),
        ("up]", "] closes nothing"),
        ("count(up})", "} closes nothing"),
        ("count(up{a=\"x)", "a quote is not closed"),
        ("'", "a quote is not closed"),
        ("up # \"\n'", "a quote is not closed"),
        ("up{a=x}", "the value of a label is not in quotes"),
        ("up{a}", "a matcher has no operator (=, !=, =~ or !~)"),
        ("up{=\"x\"}", "a matcher does not begin with a label name"),
        ("up{,}", "a matcher does not begin with a label name"),
        ("up{a=\"x\" b=\"y\"}", "a matcher is not followed by , or }"),
        ("up{a=~\"x\\.y\"}", "the escape \\. is not supported; put the value in backquotes"),
        ("up{a=~\"(x\"}", "the regular expression of a is invalid: unclosed group"),
        ("up{a!~'x)'}", "the regular expression of a is invalid: unopened group"),
        ("up{a=~`x++`}", "the regular expression of a is invalid: a repetition is repeated"),
        (
            "up{\"a.b\"=~\"[\"}",
            "the regular expression of a label in quotes is invalid: unclosed character class",
        ),
    ] {
        let error = check_expression(text).expect_err(text);
        assert_eq!(error.to_string(), problem, "{text}");
    }
}

proptest! {
    #[test]
    fn brackets_in_quotes_are_ignored_in_an_expression(value in "\\PC*|[a(){}\\[\\]\"'`#\\\\\n\t]{0,12}") {
        let value = quoted(&value);
        let text = format!("count(label_replace(up{{a={value}, b!={value}}}, \"c\", {value}, \"d\", \"\"))");
        prop_assert_eq!(check_expression(&text), Ok(()));
        let unclosed = check_expression(&format!("count(up{{a={value}}}"));
        prop_assert_eq!(unclosed, Err(TemplateError::Unclosed('(')));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|[ac{}=~!\"'`%sq,\\\\\\[\\]/ ]{0,40}") {
        if let Ok(template) = service(&text) {
            prop_assert_eq!(template.value_labels().len(), 2);
            prop_assert!(!template.labels.is_empty());
        }
    }

    #[test]
    fn the_text_of_other_matchers_is_kept(value in "\\PC*|[a\\\\\"'`\n\t]{0,8}") {
        let text = format!("c{{x={},a=%q,b=%q}}", quoted(&value).replace('%', "%%"));
        let template = service(&text).unwrap();
        let expected = format!("c{{x={},a!=\"\",b!=\"\"}}", quoted(&value));
        prop_assert_eq!(&*template.selector, expected);
    }

    #[test]
    fn a_text_as_a_regular_expression_matches_itself(text in "\\PC{0,20}") {
        // As in Go, a backslash makes the following punctuation literal.
        let mut plain = String::new();
        let pattern = escaped(&text);
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if character == '\\' {
                plain.push(characters.next().unwrap());
            } else {
                let is_special = r".+*?()|[]{}^$".contains(character);
                prop_assert!(!is_special);
                plain.push(character);
            }
        }
        prop_assert_eq!(plain, text);
    }
}
