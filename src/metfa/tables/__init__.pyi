from metfa.tables.rows import explain as explain
