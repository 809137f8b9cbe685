// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/telemetry/version"
	"fleetgate.io/fleetgate/test/support/env"
)

// release is the folder of a release, and where it was published.
type release struct{ folder, repository string }

// newRelease makes the folder of a release as `make release-folder` does, and publishes it to a
// registry of the suite. Its images are empty: the suite is the kubelet, and runs the folder's
// binaries.
func newRelease(ctx context.Context) *release {
	GinkgoHelper()
	r := &release{folder: GinkgoT().TempDir(), repository: newRegistry()}
	images := GinkgoT().TempDir()
	binaries := filepath.Join(images, "bin", runtime.GOOS, runtime.GOARCH)
	Expect(os.MkdirAll(binaries, 0o755)).To(Succeed())
	for _, command := range []string{"gateway", "agent"} {
		Expect(os.Symlink(filepath.Join(home, ".fleetgate", "bin", command), filepath.Join(binaries, command))).To(Succeed())
		image, err := oci.New(filepath.Join(images, command))
		Expect(err).NotTo(HaveOccurred())
		manifest, err := oras.PackManifest(ctx, image, oras.PackManifestVersion1_1, "application/vnd.example", oras.PackManifestOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(image.Tag(ctx, manifest, version.Get())).To(Succeed())
	}
	run(ctx, home, "go", "run", "./hack/bundle", "-version="+version.Get(), "-repository="+r.repository, "-images="+images,
		"-charts=charts", "-helm=.fleetgate/bin/helm", "-out="+r.folder)
	return r
}

// newRegistry returns the repository of the images in a registry on loopback.
func newRegistry() string {
	served := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewInMemoryBlobHandler())))
	DeferCleanup(served.Close)
	return strings.TrimPrefix(served.URL, "http://") + "/fleetgate"
}

// publish pushes the images and charts in the folder.
func (r *release) publish(ctx context.Context) {
	GinkgoHelper()
	for _, command := range []string{"gateway", "agent"} {
		image, err := oci.NewFromTar(ctx, r.path(command+".oci.tar"))
		Expect(err).NotTo(HaveOccurred())
		_, err = oras.Copy(ctx, image, version.Get(), r.imagesOf(command), version.Get(), oras.DefaultCopyOptions)
		Expect(err).NotTo(HaveOccurred())
		_, err = helm(ctx, hub, "push", r.path(command+"-"+number()+".tgz"), "oci://"+r.repository+"/charts", "--plain-http")
		Expect(err).NotTo(HaveOccurred())
	}
}

func (r *release) imagesOf(command string) *remote.Repository {
	GinkgoHelper()
	images, err := remote.NewRepository(r.repository + "/" + command)
	Expect(err).NotTo(HaveOccurred())
	images.PlainHTTP = true
	return images
}

func (r *release) path(file string) string { return filepath.Join(r.folder, file) }

// binary is a program for this machine.
func (r *release) binary(command string) string {
	return r.path(command + "-" + runtime.GOOS + "-" + runtime.GOARCH)
}

// number is the version of the charts.
func number() string { return strings.TrimPrefix(version.Get(), "v") }

// chart names a published chart for helm.
func chart(name string) string { return "oci://" + released.repository + "/charts/" + name }

func run(ctx context.Context, dir, program string, args ...string) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env = dir, env.ForGo()
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %v: %s", program, args, out)
}

// applyDefinitions does what a user does who installs CustomResourceDefinitions by another tool.
func applyDefinitions(ctx context.Context, cluster *env.Cluster, file string) {
	GinkgoHelper()
	args := []string{"apply", "--server-side", "--filename=" + file, "--kubeconfig=" + filepath.Join(cluster.Dir, env.BreakGlass+".kubeconfig")}
	program, err := env.Kubectl(args...)
	Expect(err).NotTo(HaveOccurred())
	run(ctx, cluster.Dir, program, args...)
}

// definitionsOn are the names of all CustomResourceDefinitions of a cluster.
func definitionsOn(ctx context.Context, cluster client.Client) []string {
	GinkgoHelper()
	var list apiextensionsv1.CustomResourceDefinitionList
	Expect(cluster.List(ctx, &list)).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// expectPublished expects the Pod of a command to run its image of the release, by digest.
func expectPublished(ctx context.Context, command string, pod *corev1.Pod) {
	GinkgoHelper()
	published, err := released.imagesOf(command).Resolve(ctx, version.Get())
	Expect(err).NotTo(HaveOccurred())
	Expect(pod.Spec.Containers[0].Image).To(Equal(released.repository + "/" + command + "@" + string(published.Digest)))
}
