//! No test takes a port that was bound and released again: another program may get it in between.
//! `tests/cluster/ports.rs` reserves ports. Nothing listens at port 1.

use crate::{Source, assert_none, is_rust, sources};

fn is_script(path: &str) -> bool {
    [".sh", ".py"].iter().any(|end| path.ends_with(end))
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The variable of a line such as `let mut listener = …`.
fn variable(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("let ")?;
    let (name, _) = rest.strip_prefix("mut ").unwrap_or(rest).split_once(" =")?;
    Some(name)
}

/// Whether the statement at the beginning of these lines binds a socket to a port that the kernel chooses,
/// and the socket is dropped in it or later in its block, whose result may be the address.
fn is_released(lines: &[&str]) -> bool {
    let first = lines[0];
    let Some(name) = variable(first) else { return false };
    let end = lines.iter().position(|line| line.ends_with(';')).map_or(lines.len(), |last| last + 1);
    let statement = lines[..end].concat();
    let is_zero = [":0\"", ", 0)"].iter().any(|zero| statement.contains(zero));
    let is_chosen = is_zero && statement.contains("TcpListener::bind(");
    let is_inside = |line: &&&str| line.is_empty() || indentation(line) >= indentation(first);
    let block: Vec<&str> = lines[end..].iter().take_while(is_inside).map(|line| line.trim()).collect();
    let (release, result) = (format!("drop({name});"), format!("{name}.local_addr()"));
    let is_result = block.last().is_some_and(|last| last.starts_with(&result));
    is_chosen && (statement.contains(".local_addr()") || block.contains(&&*release) || is_result)
}

/// Whether a line of a script prints the port of a socket that ends with its command.
fn is_printed(line: &str) -> bool {
    line.contains(".bind((") && line.contains("getsockname()")
}

fn released_ports(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        let lines: Vec<&str> = source.text.lines().collect();
        let is_rust = is_rust(&source.path);
        for (at, line) in lines.iter().enumerate() {
            let is_found = if is_rust { is_released(&lines[at..]) } else { is_printed(line) };
            if is_found {
                violations.push(format!("{}:{}: {}", source.path, at + 1, line.trim()));
            }
        }
    }
    violations
}

#[test]
fn no_port_is_bound_and_released() {
    let read = sources(&["src", "tests", "benches", "examples"], |path| is_rust(path) || is_script(path));
    assert_none("ports that another program may get", &released_ports(&read));
}

#[test]
fn released_ports_are_found() {
    let found = |path: &str, text: &str| {
        released_ports(&[Source { path: path.to_owned(), text: text.to_owned() }]).len()
    };
    let bound = "    let a = TcpListener::bind(\"127.0.0.1:0\").expect(\"a port\");\n";
    let pair = "    let mut a =\n        TcpListener::bind((host, 0)).await.unwrap();\n";
    let released = "\n    let port = port_of(&a);\n    drop(a);\n";
    assert_eq!(found("a.rs", &format!("{bound}{released}}}\n")), 1);
    assert_eq!(found("a.rs", &format!("{pair}{released}}}\n")), 1);
    assert_eq!(found("a.rs", &format!("{bound}    let port = port_of(&a);\n}}\n")), 0, "it is kept");
    assert_eq!(found("a.rs", &format!("{bound}}}\n\nfn b(a: A) {{{released}}}\n")), 0, "in another function");
    assert_eq!(found("a.rs", &format!("{}{released}", bound.replace(":0", ":7000"))), 0, "a chosen port");
    let at_once =
        "    let port = TcpListener::bind(\"127.0.0.1:0\").unwrap().local_addr().unwrap().port();\n";
    assert_eq!(found("a.rs", at_once), 1);
    assert_eq!(found("a.rs", &format!("{bound}    a.local_addr().unwrap().port()\n}}\n")), 1, "a result");
    let printed = "python3 -c 's.bind((\"\", 0)); print(s.getsockname()[1])'\n";
    assert_eq!((found("a.sh", printed), found("a.py", "print(s.getsockname()[1])\n")), (1, 0));
}
