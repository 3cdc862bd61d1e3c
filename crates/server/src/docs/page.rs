//! The page for people: `openapi.json` and the refusal codes as HTML that needs nothing but itself.

use json::{Document, Limits, Node};
use std::fmt::Write;

const TEMPLATE: &str = include_str!("../../docs.html");

/// Writes the page; what is described in the two documents stands on it, and nothing else.
pub(super) fn render<'a>(openapi: &str, refusals: &str, schemas: impl Iterator<Item = &'a str>) -> String {
    let (Some(openapi), Some(refusals)) = (read(openapi), read(refusals)) else { return String::new() };
    let openapi = openapi.root();
    let mut page = Page::default();
    openapi.get("tags").into_iter().flat_map(Node::elements).for_each(|tag| page.group(openapi, tag));
    TEMPLATE
        .replace("{{version}}", text(openapi.get("info"), "version"))
        .replace("{{about}}", &prose(text(openapi.get("info"), "description")))
        .replace("{{contents}}", &page.contents)
        .replace("{{routes}}", &page.routes)
        .replace("{{refusals}}", &codes(refusals.root()))
        .replace("{{schemas}}", &links(schemas))
}

fn read(text: &str) -> Option<Document> {
    Document::parse(text.as_bytes(), &Limits::OURS).ok()
}

/// The text in a member, or nothing.
fn text<'a>(node: Option<Node<'a>>, name: &str) -> &'a str {
    node.and_then(|node| node.get(name)).and_then(Node::as_str).unwrap_or_default()
}

/// Routes by group, and the list of them at the top.
#[derive(Default)]
struct Page {
    contents: String,
    routes: String,
}

impl Page {
    fn group(&mut self, openapi: Node<'_>, tag: Node<'_>) {
        let name = text(Some(tag), "name");
        let _ = write!(self.contents, "<h3>{}</h3><ul>", escape(name));
        let _ = write!(self.routes, "<h2>{}</h2><p>{}</p>", escape(name), prose(text(Some(tag), "description")));
        let tagged = |operation: Node<'_>| {
            operation.get("tags").into_iter().flat_map(Node::elements).any(|tag| tag.as_str() == Some(name))
        };
        for (path, methods) in openapi.get("paths").into_iter().flat_map(Node::members) {
            for (method, operation) in methods.members().filter(|(_, operation)| tagged(*operation)) {
                self.route(&method.to_uppercase(), path, operation);
            }
        }
        self.contents.push_str("</ul>");
    }

    fn route(&mut self, method: &str, path: &str, operation: Node<'_>) {
        let (summary, anchor) = (text(Some(operation), "summary"), text(Some(operation), "operationId"));
        let _ = write!(
            self.contents,
            "<li><a href=\"#{anchor}\"><b class=\"{method}\">{method}</b> <code>{path}</code></a></li>"
        );
        let _ = write!(
            self.routes,
            "<section id=\"{anchor}\"><h3><b class=\"{method}\">{method}</b> <code>{path}</code></h3>\
             <p class=\"summary\">{}</p><p>{}</p>",
            escape(summary),
            prose(text(Some(operation), "description")),
        );
        self.parameters(operation);
        if let Some(body) = operation.get("requestBody") {
            self.body("Send", body);
        }
        for (status, response) in operation.get("responses").into_iter().flat_map(Node::members) {
            let title = format!("{status} {}", escape(text(Some(response), "description")));
            self.body(&title, response);
        }
        let _ = write!(self.routes, "<h4>Try it</h4><pre>{}</pre></section>", escape(text(Some(operation), "x-curl")));
    }

    fn parameters(&mut self, operation: Node<'_>) {
        let Some(parameters) = operation.get("parameters") else { return };
        self.routes.push_str("<table><tr><th>Parameter</th><th>In</th><th></th></tr>");
        for parameter in parameters.elements().map(Some) {
            let (name, place) = (text(parameter, "name"), text(parameter, "in"));
            let meaning = prose(text(parameter, "description"));
            let _ = write!(self.routes, "<tr><td><code>{name}</code></td><td>{place}</td><td>{meaning}</td></tr>");
        }
        self.routes.push_str("</table>");
    }

    /// What is sent or comes back: its schema and an example, folded.
    fn body(&mut self, title: &str, body: Node<'_>) {
        let content = body.get("content").into_iter().flat_map(Node::members).next();
        let Some((media_type, content)) = content else {
            let _ = write!(self.routes, "<p class=\"body\">{title}</p>");
            return;
        };
        let schema = text(content.get("schema"), "$ref").trim_start_matches('.');
        let link = if schema.is_empty() { String::new() } else { format!(" · <a href=\"{schema}\">schema</a>") };
        let _ = write!(self.routes, "<p class=\"body\">{title} <small>{media_type}{link}</small></p>");
        if let Some(example) = content.get("example") {
            let example = match example.as_str() {
                Some(text) => text.to_owned(),
                None => format!("{:#}", example.to_value()),
            };
            let _ = write!(self.routes, "<details><summary>example</summary><pre>{}</pre></details>", escape(&example));
        }
    }
}

fn codes(families: Node<'_>) -> String {
    let mut html = String::new();
    for family in families.elements() {
        let (title, when) = (text(Some(family), "title"), text(Some(family), "when"));
        let _ = write!(html, "<details><summary>{}</summary><p>{}</p><dl>", escape(title), prose(when));
        for refusal in family.get("codes").into_iter().flat_map(Node::elements).map(Some) {
            let code = text(refusal, "code");
            let (meaning, advice) = (prose(text(refusal, "meaning")), prose(text(refusal, "advice")));
            let _ = write!(
                html,
                "<dt id=\"code-{code}\"><code>{code}</code></dt><dd>{meaning} <i>{advice}</i> <small>{}</small></dd>",
                escape(text(refusal, "section")),
            );
        }
        html.push_str("</dl></details>");
    }
    html
}

fn links<'a>(schemas: impl Iterator<Item = &'a str>) -> String {
    schemas.map(|name| format!("<li><a href=\"/schemas/{name}\">{name}</a></li>")).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escaped text whose backticks become code.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (position, part) in escape(text).split('`').enumerate() {
        let inside = position % 2 == 1;
        let _ = if inside { write!(html, "<code>{part}</code>") } else { write!(html, "{part}") };
    }
    html.replace("\n\n", "</p><p>")
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_stands_in_backticks_is_code_and_nothing_is_markup() {
        assert_eq!(super::prose("give `<a>` & \"b\""), "give <code>&lt;a&gt;</code> &amp; &quot;b&quot;");
    }
}
