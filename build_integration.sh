#!/usr/bin/env bash
# Fetch Apache Kafka releases from Maven Central into servers/<release>/kafka-bin.
#
#   ./build_integration.sh                 the default set (see servers/releases.txt)
#   ./build_integration.sh 0.8.2.2 4.4.0   these releases
#   ./build_integration.sh table           the default set and what the table in docs/brokers.rst adds
#   ./build_integration.sh all             every release of servers/releases.txt
#   KAFKA_VERSION=4.4.0 ./build_integration.sh     the same as naming it; several: comma or blank between
#
# What is there already stays as it is. A release appears whole or not at all: its jars are
# collected in a temporary folder (in .cache), which is renamed at the end.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$here/servers/releases.txt
partial=

fail() {
    echo "build_integration.sh: $*" >&2
    exit 1
}

clean_up() { [ -z "$partial" ] || rm -rf "$partial"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Print the table's rows, without comments.
rows() { grep -Ev '^[[:space:]]*(#|$)' "$table"; }

# Print the releases that the given words stand for, in the table's order.
select_releases() {
    local word release set found
    for word in "$@"; do
        found=
        while read -r release set _; do
            if [ "$word" = all ] || [ "$word" = "$release" ] || [ "$word" = "$set" ] ||
                { [ "$word" = table ] && [[ $set =~ ^(default|embedded)$ ]]; }; then
                echo "$release"
                found=yes
            fi
        done < <(rows)
        [ -n "$found" ] || fail "no release '$word' in servers/releases.txt; it lists:" \
            "$(rows | awk '{printf "%s ", $1}')"
    done
}

dependency() { # group:artifact:version, then the exclusions' XML
    local group artifact version
    IFS=: read -r group artifact version <<<"$1"
    echo "  <dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>"
    echo "   <exclusions>$2</exclusions></dependency>"
}

# Print what a word of the table's last column stands for: +adds a jar alone, -leaves one out.
changes_of() {
    local release=$1 word
    shift
    for word in "$@"; do
        case $word in
            # The broker's log: 1.1 to 3.9 bring no binding of slf4j, 0.8.0 and 0.8.1 no log4j one.
            # (reload4j is no way out: ZooKeeper 3.4 wants a class that only log4j 1.2 has.)
            log4j12) echo +org.slf4j:slf4j-log4j12:1.7.30 +log4j:log4j:1.2.17 ;;
            log4j2)
                for word in log4j-slf4j-impl log4j-core log4j-api; do
                    echo "+org.apache.logging.log4j:$word:2.25.4"
                done
                ;;
            # 0.10.1 to 0.11 read base64 with a class that left the JDK with 11.
            jaxb) echo +javax.xml.bind:jaxb-api:2.3.1 ;;
            # ZooKeeper 3.4.13 (2.0 to 2.3) cannot resolve addresses on JDK 14 and later.
            zookeeper) echo +org.apache.zookeeper:zookeeper:3.4.12 ;;
            # TopicCommand and the console tools, a jar of its own from 3.x on ...
            tools) echo "+org.apache.kafka:kafka-tools:$release" ;;
            # ... which was not published for 4.4.0, nor the interface that its pom names.
            no-tools) echo -org.apache.kafka:kafka-tools-api ;;
            *) fail "servers/releases.txt: unknown word '$word' for $release" ;;
        esac
    done
}

exclusion() { echo "<exclusion><groupId>${1%%:*}</groupId><artifactId>${1#*:}</artifactId></exclusion>"; }

# Print the pom whose dependencies are one release.
pom() {
    local release=$1 artifact=$2 change left_out=''
    shift 2
    # log4j 1.2.15's pom names the first four, which no repository has; the others are test and build tools.
    for change in com.sun.jmx:jmxri com.sun.jdmk:jmxtools javax.jms:jms javax.mail:mail \
        junit:junit org.slf4j:slf4j-simple org.scala-lang:scala-compiler; do
        left_out+=$(exclusion "$change")
    done
    for change in "$@"; do
        [ "${change:0:1}" = + ] || left_out+=$(exclusion "${change:1}")
    done
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo " <groupId>kafka-evergreen</groupId><artifactId>servers</artifactId><version>$release</version>"
    echo ' <dependencies>'
    dependency "org.apache.kafka:$artifact:$release" "$left_out"
    for change in "$@"; do
        [ "${change:0:1}" = - ] || dependency "${change:1}" "$(exclusion '*:*')"
    done
    echo ' </dependencies></project>'
}

fetch() {
    local release=$1 artifact=$2 target=$here/servers/$1/kafka-bin started=$SECONDS
    shift 2
    mkdir -p "$here/.cache" "$here/servers/$release"
    partial=$(mktemp -d "$here/.cache/fetch-$release.XXXXXX")
    pom "$release" "$artifact" "$@" >"$partial/pom.xml"
    if [ -d "$target/libs" ] && cmp -s "$partial/pom.xml" "$target/pom.xml"; then
        echo "$release: is there already"
    else
        command -v mvn >/dev/null || fail "Maven is missing: install it (Debian, Ubuntu: apt-get install maven)"
        command -v java >/dev/null || fail "Java is missing: install a JDK, 17 or later" \
            "(Debian, Ubuntu: apt-get install openjdk-17-jdk-headless)"
        echo "$release: fetching with Maven ..."
        if ! mvn --batch-mode --file "$partial/pom.xml" dependency:copy-dependencies \
            -DincludeScope=runtime -DoutputDirectory="$partial/libs" >"$partial/maven.log" 2>&1; then
            grep -E '^\[ERROR\]' "$partial/maven.log" | head -n 20 >&2 || tail -n 20 "$partial/maven.log" >&2
            fail "Maven could not fetch Apache Kafka $release (its errors are above)"
        fi
        ls "$partial"/libs/"$artifact"-*.jar >/dev/null || fail "Maven brought no $artifact jar for $release"
        chmod 755 "$partial"
        rm -rf "$target"
        mv "$partial" "$target"
        echo "$release: $(find "$target/libs" -name '*.jar' | wc -l | tr -d ' ') jars," \
            "$(du -sm "$target" | cut -f1) MB, $((SECONDS - started)) s"
    fi
    clean_up
    partial=
}

[ -r "$table" ] || fail "servers/releases.txt is missing"
words=("$@")
[ ${#words[@]} -gt 0 ] || IFS=', ' read -r -a words <<<"${KAFKA_VERSION:-default}"
wanted=$(select_releases "${words[@]}")
count=$(wc -w <<<"$wanted" | tr -d ' ')
number=0
for release in $wanted; do
    number=$((number + 1))
    read -r _ _ artifact changes < <(rows | awk -v release="$release" '$1 == release')
    echo -n "[$number/$count] "
    # shellcheck disable=SC2046,SC2086  # the changes are words of their own
    fetch "$release" "$artifact" $(changes_of "$release" $changes)
done
