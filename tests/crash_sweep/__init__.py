"""Crash every named point in three ways, at its first and second hit, in runs that pay, are rewound and pay again."""
