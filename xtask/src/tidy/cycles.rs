//! The modules of a crate depend on each other in one direction: no cycle has more than [`MOST_FILES`] files.
//!
//! A file depends on the file that a path names an item or a module of, if the path begins with `crate::` or `super::`. Paths in `use` and in
//! other code count alike; tests, documentation and `pub(in ..)` do not. A name that a module re-exports belongs to the file that it is
//! from. The exception is the root, whose re-exports are the interface of the whole crate. Paths to own submodules do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tokens::{self, braces, is_punctuation, is_word};
use crate::outcome::{Failure, Result};
use crate::workspace::{Package, Workspace, read};

/// The most files of a cycle.
const MOST_FILES: usize = 8;

/// Crates with a larger cycle, and its size. The size has to be the measured one, so it can only fall.
const CEILINGS: &[(&str, usize)] = &[];

/// The files of a crate, and which of them each file depends on.
#[derive(Debug, Default)]
pub(super) struct Graph {
    files: Vec<String>,
    edges: Vec<BTreeSet<usize>>,
}

/// A file that is read, with the module that it is and the folder of its submodules.
struct Source {
    file: usize,
    module: Vec<String>,
    folder: String,
}

/// A path that begins with `crate::` or `super::`, from the crate's root.
struct Reference {
    from: usize,
    path: Vec<String>,
}

/// Findings for the cycles of a package, and a line for its largest cycle.
pub(super) fn check(workspace: &Workspace, package: &Package) -> Result<(Vec<String>, Option<String>)> {
    let mut largest = (Vec::new(), 0);
    for target in package.targets.iter().filter(|target| ["lib", "proc-macro", "bin"].contains(&target.kind.as_str())) {
        let graph = Graph::of(&workspace.relative(&target.source), &|path| {
            let path = workspace.root.join(path);
            path.is_file().then(|| read(&path)).transpose()
        })?;
        let cycle = graph.largest_cycle();
        if cycle.len() > largest.0.len() || largest.1 == 0 {
            largest = (cycle, graph.files.len());
        }
    }
    let (cycle, n_files) = largest;
    let ceiling = CEILINGS.iter().find(|(name, _)| *name == package.name).map(|(_, ceiling)| *ceiling);
    let line = (cycle.len() > 1).then(|| format!("{}: {} of {n_files} files", package.name, cycle.len()));
    Ok((findings(&package.name, &cycle, ceiling), line))
}

fn findings(name: &str, cycle: &[String], ceiling: Option<usize>) -> Vec<String> {
    let found = cycle.len();
    let allowed = ceiling.unwrap_or(MOST_FILES).max(MOST_FILES);
    if found > allowed {
        let message = format!("{name}: a module cycle has {found} files, at most {allowed}: {}", cycle.join(", "));
        return vec![message];
    }
    match ceiling {
        Some(_) if found <= MOST_FILES => {
            vec![format!("{name}: the largest module cycle has {found} files: remove the row of CEILINGS")]
        }
        Some(ceiling) if found < ceiling => {
            vec![format!("{name}: the largest module cycle has {found} files: lower the ceiling of {ceiling} to that")]
        }
        _ => Vec::new(),
    }
}

impl Graph {
    /// The files that the crate with this root file consists of. `read` returns the text of a file, or `None` if there is no such file.
    fn of(root: &str, read: &dyn Fn(&str) -> Result<Option<String>>) -> Result<Self> {
        let mut graph = Self { files: vec![root.to_owned()], edges: Vec::new() };
        let mut modules = BTreeMap::from([(Vec::new(), 0)]);
        let mut references = Vec::new();
        let mut imports = Vec::new();
        let mut todo = vec![Source { file: 0, module: Vec::new(), folder: folder_of(root) }];
        while let Some(source) = todo.pop() {
            let path = graph.files[source.file].clone();
            let text = read(&path)?.ok_or_else(|| Failure::new(format!("{path}: there is no such file")))?;
            let tokens = tokens::of(&text).map_err(|error| Failure::new(format!("{path}: {error}")))?;
            let mut walk = Walk::new(&source);
            walk.tokens(&tokens, &source.module);
            let paths = path_attributes(&text);
            let Walk { declared, inline, .. } = walk;
            references.extend(walk.references);
            imports.extend(walk.imports);
            modules.extend(inline.into_iter().map(|module| (module, source.file)));
            for module in declared {
                let place = module[source.module.len()..].join("/");
                let candidates = match module.last().and_then(|name| paths.get(name)) {
                    Some(named) => vec![format!("{}/{named}", folder_of(&path))],
                    None => vec![format!("{}/{place}.rs", source.folder), format!("{}/{place}/mod.rs", source.folder)],
                };
                let mut known = None;
                for candidate in &candidates {
                    if read(candidate)?.is_some() {
                        known = Some(candidate.clone());
                    }
                }
                let Some(file) = known else {
                    return Err(Failure::new(format!("{path}: there is no file for the module {place}")));
                };
                let folder = match file.strip_suffix("/mod.rs") {
                    Some(folder) => folder.to_owned(),
                    None => file.trim_end_matches(".rs").to_owned(),
                };
                // A module may be declared once for each platform.
                if !modules.contains_key(&module) {
                    let position = graph.files.len();
                    modules.insert(module.clone(), position);
                    graph.files.push(file);
                    todo.push(Source { file: position, module, folder });
                }
            }
        }
        graph.edges = vec![BTreeSet::new(); graph.files.len()];
        let names = Names::of(modules, imports);
        for Reference { from, path } in references {
            let to = names.file(path);
            if to != from {
                graph.edges[from].insert(to);
            }
        }
        Ok(graph)
    }

    /// The files of the largest cycle; one file if there is no cycle.
    fn largest_cycle(&self) -> Vec<String> {
        let largest = Components::of(&self.edges).into_iter().max_by_key(Vec::len).unwrap_or_default();
        let mut names: Vec<String> = largest.into_iter().map(|file| self.files[file].clone()).collect();
        names.sort();
        names
    }
}

fn folder_of(path: &str) -> String {
    Path::new(path).parent().unwrap_or(Path::new("")).to_string_lossy().into_owned()
}

/// The modules whose files an attribute names. Of several, such as one for each platform, the last counts.
fn path_attributes(text: &str) -> BTreeMap<String, String> {
    let mut paths = BTreeMap::new();
    let mut named = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            let path = line.split_once("path = \"").and_then(|(_, rest)| rest.split_once('"'));
            named = path.map(|(path, _)| path.to_owned()).or(named);
        } else {
            let module = line.split_once("mod ").and_then(|(_, rest)| rest.strip_suffix(';'));
            if let (Some(module), Some(named)) = (module, named.take()) {
                paths.insert(module.to_owned(), named);
            }
        }
    }
    paths
}

/// The modules of a crate with their files, and the names that `use` gives to items in other places.
struct Names {
    modules: BTreeMap<Vec<String>, usize>,
    /// By the path of the name.
    imported: BTreeMap<Vec<String>, Vec<String>>,
}

impl Names {
    fn of(modules: BTreeMap<Vec<String>, usize>, imports: Vec<Import>) -> Self {
        let mut imported = BTreeMap::new();
        for Import { module, name, path } in imports.into_iter().filter(|import| !import.module.is_empty()) {
            let mut target = match path[0].as_str() {
                "crate" => Vec::new(),
                "self" | "super" => module.clone(),
                first if modules.contains_key(&joined(&module, first)) => joined(&module, first),
                // Another crate's.
                _ => continue,
            };
            let rest = if path[0] == "super" { &path[..] } else { &path[1..] };
            for segment in rest {
                if segment == "super" {
                    target.pop();
                } else {
                    target.push(segment.clone());
                }
            }
            let name = joined(&module, &name);
            if name != target {
                imported.insert(name, target);
            }
        }
        Self { modules, imported }
    }

    /// The file that a path leads to.
    fn file(&self, mut path: Vec<String>) -> usize {
        // Imports that lead to each other do not compile; no path has this many in a row.
        for _ in 0..32 {
            let n_known = (0..=path.len()).rev().find(|&n| self.modules.contains_key(&path[..n])).unwrap_or(0);
            match path.get(..=n_known).and_then(|name| self.imported.get(name)) {
                Some(target) => path = target.iter().chain(&path[n_known + 1..]).cloned().collect(),
                None => return self.modules[&path[..n_known]],
            }
        }
        self.modules[&Vec::new()]
    }
}

/// A name that `use` gives to something in a module.
struct Import {
    module: Vec<String>,
    name: String,
    /// As it is written.
    path: Vec<String>,
}

/// What the tokens of one file declare and refer to.
struct Walk<'a> {
    source: &'a Source,
    declared: Vec<Vec<String>>,
    inline: Vec<Vec<String>>,
    references: Vec<Reference>,
    imports: Vec<Import>,
}

impl<'a> Walk<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, declared: Vec::new(), inline: Vec::new(), references: Vec::new(), imports: Vec::new() }
    }

    fn tokens(&mut self, tokens: &[TokenTree], module: &[String]) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1);
            match token {
                TokenTree::Ident(word) if word == "mod" => match (next, tokens.get(at + 2)) {
                    (Some(TokenTree::Ident(name)), Some(end)) if is_punctuation(end, ';') => {
                        self.declared.push(joined(module, &name.to_string()));
                        at += 2;
                    }
                    (Some(TokenTree::Ident(name)), Some(body)) if braces(body).is_some() => {
                        let inner = joined(module, &name.to_string());
                        self.group(braces(body).unwrap_or_default(), &inner);
                        self.inline.push(inner);
                        at += 2;
                    }
                    _ => {}
                },
                TokenTree::Ident(word) if word == "use" => self.import(&tokens[at + 1..], module, Vec::new()),
                // A restricted visibility is no dependency.
                TokenTree::Ident(word) if word == "pub" && next.is_some_and(is_restriction) => at += 1,
                TokenTree::Ident(word) if word == "crate" && follows(tokens, at + 1) => {
                    self.path(&tokens[at + 1..], Vec::new());
                }
                TokenTree::Ident(word) if word == "super" && !is_continued(tokens, at) => {
                    let mut base = module.to_vec();
                    base.pop();
                    self.path(&tokens[at + 1..], base);
                }
                TokenTree::Group(group) => self.group(group.stream(), module),
                _ => {}
            }
            at += 1;
        }
    }

    fn group(&mut self, stream: TokenStream, module: &[String]) {
        self.tokens(&tokens::without_tests(stream), module);
    }

    /// The names of `use a::{b, c as d};` behind `use`.
    fn import(&mut self, tokens: &[TokenTree], module: &[String], mut path: Vec<String>) {
        let mut at = 0;
        loop {
            match tokens.get(at) {
                Some(TokenTree::Ident(word)) => path.push(word.to_string()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in inner.split(|token| is_punctuation(token, ',')) {
                        self.import(tree, module, path.clone());
                    }
                    return;
                }
                // All names of a module, or a crate's name behind `::`.
                _ => return,
            }
            if !follows(tokens, at + 1) {
                break;
            }
            at += 3;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = match (tokens.get(at + 1), tokens.get(at + 2)) {
            (Some(word), Some(TokenTree::Ident(name))) if is_word(word, "as") => name.to_string(),
            _ => path[path.len() - 1].clone(),
        };
        self.imports.push(Import { module: module.to_vec(), name, path });
    }

    /// The references of `::a::b` or `::{a, b::c}` behind a base.
    fn path(&mut self, tokens: &[TokenTree], mut base: Vec<String>) {
        let mut at = 0;
        while follows(tokens, at) {
            match tokens.get(at + 2) {
                Some(TokenTree::Ident(word)) if word == "super" => drop(base.pop()),
                Some(TokenTree::Ident(word)) if word == "self" => {}
                Some(TokenTree::Ident(name)) => base.push(name.to_string()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in inner.split(|token| is_punctuation(token, ',')).filter(|tree| !tree.is_empty()) {
                        let mut path = base.clone();
                        match &tree[0] {
                            TokenTree::Ident(word) if word == "self" => {}
                            TokenTree::Ident(word) if word == "super" => drop(path.pop()),
                            TokenTree::Ident(name) => path.push(name.to_string()),
                            _ => {}
                        }
                        self.path(&tree[1..], path);
                    }
                    return;
                }
                _ => break,
            }
            at += 3;
        }
        self.references.push(Reference { from: self.source.file, path: base });
    }
}

fn joined(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Whether `::` stands there.
fn follows(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at| tokens.get(at).is_some_and(|token| is_punctuation(token, ':'));
    colon(at) && colon(at + 1)
}

/// Whether `::` stands before this token.
fn is_continued(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && follows(tokens, at - 2)
}

fn is_restriction(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis
        && group.stream().into_iter().next().is_some_and(|first| ["in", "crate", "super", "self"].iter().any(|word| is_word(&first, word))))
}

/// Tarjan's strongly connected components.
struct Components<'a> {
    edges: &'a [BTreeSet<usize>],
    n_visited: usize,
    /// The position of a node in the order of visits, and the lowest position that it reaches on the stack.
    visited: Vec<Option<(usize, usize)>>,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    found: Vec<Vec<usize>>,
}

impl<'a> Components<'a> {
    fn of(edges: &'a [BTreeSet<usize>]) -> Vec<Vec<usize>> {
        let n = edges.len();
        let mut components = Self {
            edges,
            n_visited: 0,
            visited: vec![None; n],
            stack: Vec::new(),
            on_stack: vec![false; n],
            found: Vec::new(),
        };
        for node in 0..n {
            if components.visited[node].is_none() {
                components.visit(node);
            }
        }
        components.found
    }

    /// Returns the lowest position that the node reaches. The depth of calls is at most the number of files.
    fn visit(&mut self, node: usize) -> usize {
        let position = self.n_visited;
        let mut lowest = position;
        self.n_visited += 1;
        self.visited[node] = Some((position, lowest));
        self.stack.push(node);
        self.on_stack[node] = true;
        for &next in &self.edges[node] {
            match self.visited[next] {
                None => lowest = lowest.min(self.visit(next)),
                Some((position, _)) if self.on_stack[next] => lowest = lowest.min(position),
                Some(_) => {}
            }
        }
        self.visited[node] = Some((position, lowest));
        if lowest == position {
            let start = self.stack.iter().rposition(|&other| other == node).unwrap_or(0);
            let component = self.stack.split_off(start);
            for &member in &component {
                self.on_stack[member] = false;
            }
            self.found.push(component);
        }
        lowest
    }
}

#[cfg(test)]
mod tests;
