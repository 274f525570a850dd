// What a program with franz-go does: create a topic, produce with each codec, read it back in a group, commit. And,
// with "turns", transactions.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	seeds := kgo.SeedBrokers(os.Args[1])
	plain, err := kgo.NewClient(seeds)
	must(err)
	defer plain.Close()
	admin := kadm.NewClient(plain)
	if len(os.Args) > 2 && os.Args[2] == "turns" {
		turns(ctx, seeds, admin)
		return
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := fmt.Sprintf("go-%s-%d", name, time.Now().UnixNano())
		_, err := admin.CreateTopic(ctx, 3, 1, nil, topic)
		must(err)
		const count = 3000
		producer, err := kgo.NewClient(seeds, kgo.ProducerBatchCompression(codecs[name]), kgo.DefaultProduceTopic(topic))
		must(err)
		for i := 0; i < count; i++ {
			producer.Produce(ctx, &kgo.Record{
				Key: []byte(fmt.Sprintf("key-%d", i%50)), Value: []byte(fmt.Sprintf("value-%d", i)),
				Headers: []kgo.RecordHeader{{Key: "n", Value: []byte(fmt.Sprint(i))}},
			}, func(_ *kgo.Record, err error) { must(err) })
		}
		must(producer.Flush(ctx))
		producer.Close()
		consumer, err := kgo.NewClient(seeds, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		must(err)
		seen := map[string]bool{}
		for len(seen) < count {
			fetches := consumer.PollFetches(ctx)
			must(fetches.Err())
			fetches.EachRecord(func(r *kgo.Record) {
				if string(r.Value) != "value-"+string(r.Headers[0].Value) || seen[string(r.Value)] {
					panic("wrong or twice: " + string(r.Value))
				}
				seen[string(r.Value)] = true
			})
		}
		must(consumer.CommitUncommittedOffsets(ctx))
		lags, err := admin.Lag(ctx, topic)
		must(err)
		if lag := lags[topic].Lag.Total(); lag != 0 {
			panic(fmt.Sprint("lag ", lag))
		}
		consumer.Close()
		_, err = admin.DeleteTopic(ctx, topic)
		must(err)
		fmt.Println("OK", name)
	}
}

// Commits and aborts in turns, with records that still linger when the abort is asked for.
func turns(ctx context.Context, seeds kgo.Opt, admin *kadm.Client) {
	const partitions, times = 50, 50
	topic := fmt.Sprintf("go-turns-%d", time.Now().UnixNano())
	_, err := admin.CreateTopic(ctx, partitions, 1, nil, topic)
	must(err)
	producer, err := kgo.NewClient(seeds, kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic),
		kgo.ProducerLinger(20*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(err)
	send := func(value string) {
		must(producer.BeginTransaction())
		for i := int32(0); i < partitions; i++ {
			producer.Produce(ctx, &kgo.Record{Partition: i, Value: []byte(value)}, nil)
		}
	}
	for turn := 0; turn < times; turn++ {
		send("in")
		must(producer.Flush(ctx))
		must(producer.EndTransaction(ctx, kgo.TryCommit))
		send("out")
		must(producer.AbortBufferedRecords(ctx))
		must(producer.EndTransaction(ctx, kgo.TryAbort))
	}
	producer.Close()
	consumer, err := kgo.NewClient(seeds, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(err)
	defer consumer.Close()
	for read := 0; read < partitions*times; {
		fetches := consumer.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			read++
			if string(r.Value) != "in" {
				panic("an aborted record was read")
			}
		})
	}
	fmt.Println("OK turns")
}
