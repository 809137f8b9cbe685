// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certutil "k8s.io/client-go/util/cert"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
	"fleetgate.io/fleetgate/test/support/env"
)

// upstreamsPrograms are built from hack/konnectivity.
const upstreamsPrograms = "../../../.fleetgate/bin/konnectivity"

// Upstream's server and client do not know our protocol extensions.
var _ = Describe("Our agent behind a Konnectivity server of upstream's", Ordered, Label("matrix"), func() {
	for _, mode := range []string{"grpc", "http-connect"} {
		Context("in mode "+mode, Ordered, func() {
			var target, elsewhere, socket string

			BeforeAll(func(ctx SpecContext) {
				target, elsewhere = greeter(), greeter()
				socket = upstreamsServer(ctx, mode, target)
			})

			// asks requests a path of an address with upstream's client, with one connection per
			// request.
			asks := func(ctx context.Context, address, path string, requests int) (string, error) {
				GinkgoHelper()
				host, port, err := net.SplitHostPort(address)
				Expect(err).NotTo(HaveOccurred())
				output, err := exec.CommandContext(ctx, upstreamsProgram("test-client"), "--mode="+mode, "--proxy-uds="+socket,
					"--proxy-host=", "--proxy-port=0", "--request-host="+host, "--request-port="+port, "--request-path="+path,
					fmt.Sprintf("--test-requests=%d", requests)).CombinedOutput()
				return string(output), err
			}

			type answer struct {
				of, path     string
				times, asked int
			}
			answers := []answer{
				{"from a server that keeps the connection open", "kept", 20, 10},
				{"from a server that closes the connection after it, like HTTP/1.0", "closed", 20, 10},
			}
			// Upstream's server loses data of several long responses in parallel, also with
			// upstream's agent. With CONNECT its client closes the connection in the middle of a
			// single one.
			if mode == "grpc" {
				answers = append(answers, answer{"from a server that sends 8 MiB and closes", "much", 20, 1})
			}
			for _, a := range answers {
				It("delivers each complete response "+a.of, func(ctx SpecContext) {
					for range a.times {
						output, err := asks(ctx, target, a.path, a.asked)
						Expect(err).NotTo(HaveOccurred(), output)
					}
				}, SpecTimeout(2*time.Minute))
			}

			It("rejects a target that is not allowed", func(ctx SpecContext) {
				output, err := asks(ctx, elsewhere, "kept", 1)
				Expect(err).To(HaveOccurred(), output)
			}, SpecTimeout(time.Minute))
		})
	}
})

// greeter answers on three paths: /kept keeps the connection open, /closed has no length and
// closes, /much sends 8 MiB and closes.
func greeter() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // The test has ended.
			}
			go greet(conn)
		}
	}()
	return listener.Addr().String()
}

func greet(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return // The client closed the connection.
		}
		answer := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, Request: request, ContentLength: -1, Close: true}
		switch request.URL.Path {
		case "/kept":
			answer.ProtoMinor, answer.ContentLength, answer.Close = 1, 5, false
			answer.Body = io.NopCloser(io.LimitReader(zeros{}, 5))
		case "/much":
			answer.Body = io.NopCloser(io.LimitReader(zeros{}, 8<<20))
		default:
			answer.Body = io.NopCloser(io.LimitReader(zeros{}, 100))
		}
		if err := answer.Write(conn); err != nil || answer.Close {
			return // The file closes with the connection.
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// upstreamsProgram returns the path of an upstream program.
func upstreamsProgram(name string) string {
	GinkgoHelper()
	program, err := filepath.Abs(filepath.Join(upstreamsPrograms, name))
	Expect(err).NotTo(HaveOccurred())
	Expect(program).To(BeAnExistingFile(), "make .fleetgate/bin/konnectivity/server builds it")
	return program
}

// upstreamsServer runs an upstream server with our agent, which may dial the target, and returns
// the socket for its clients.
func upstreamsServer(ctx context.Context, mode, target string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	Expect(err).NotTo(HaveOccurred())
	for name, content := range map[string][]byte{"server.crt": certificate, "server.key": key} {
		Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	ports, err := env.FreePorts(3)
	Expect(err).NotTo(HaveOccurred())
	address, socket := fmt.Sprintf("127.0.0.1:%d", ports[0]), filepath.Join(dir, "frontends.sock")
	server, err := env.NewProcess(env.ProcessOptions{
		Name: "konnectivity-server", Dir: dir, Path: upstreamsProgram("server"),
		Args: []string{
			"--mode=" + mode, "--uds-name=" + socket, "--server-port=0", "--agent-bind-address=127.0.0.1", "--agent-port=" + strconv.Itoa(ports[0]),
			"--admin-port=" + strconv.Itoa(ports[1]), "--health-port=" + strconv.Itoa(ports[2]), "--health-bind-address=127.0.0.1",
			"--cluster-cert=" + filepath.Join(dir, "server.crt"), "--cluster-key=" + filepath.Join(dir, "server.key"),
		},
		Ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(server.Start(ctx)).To(Succeed())
	DeferCleanup(server.Stop)
	join(address, certificate, target)
	return socket
}

// join connects our agent, which may dial the target, to an upstream server.
func join(address string, ca []byte, target string) {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(ca)).To(BeTrue())
	allow, err := konnectivity.ParseAllow([]string{target})
	Expect(err).NotTo(HaveOccurred())
	connected := make(chan struct{}, 16)
	connector := &konnectivity.Connector{
		Member: member, Address: address, ID: "ours",
		TLS:   &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13},
		Allow: allow,
		OnStateChange: func(s tunnel.State) {
			if s.Connected {
				connected <- struct{}{}
			}
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connector.Run(ctx) }()
	DeferCleanup(func() {
		stop()
		<-ended
	})
	Eventually(connected).Should(Receive())
}
