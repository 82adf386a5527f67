"""Context packages: what a task needs to know, from vectors, metadata and the graph, governed, within a budget (seed 003).

    ContextBuildRequest → vectors, metadata and graph, side by side → blended score → govern → fit → ContextPackage
"""
