"""What is drawn: charts, diagrams, small SVG pictures, explorers, live curves."""
