# To be sourced: pip_command PACKAGE VERSION COMMAND prints the path of a command that a PyPI package brings. The package
# gets an environment of its own, made once for each version, outside the source tree.
pip_command() {
  local package=$1 version=$2 command=$3
  local environment=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/$package-$version
  # The mark comes last: an environment without it was left half-made.
  if [ ! -e "$environment/complete" ]; then
    echo "installing $package $version from PyPI into $environment" >&2
    rm -rf "$environment"
    python3 -m venv "$environment" >&2
    "$environment/bin/pip" --quiet --disable-pip-version-check install "$package==$version" >&2
    touch "$environment/complete"
  fi
  echo "$environment/bin/$command"
}
