"""Context packages: what a task needs to know, governed, within a budget, cached and traceable (seed 003).

ContextBuildRequest → vectors, metadata and graph, side by side → blended score → govern → fit → ContextPackage
"""
