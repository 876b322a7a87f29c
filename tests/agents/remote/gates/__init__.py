"""Gates that programs elsewhere post: alone or several, under which policy, who decides and who takes them back."""
