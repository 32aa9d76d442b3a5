"""What is learned from several runs or several looks at one."""
