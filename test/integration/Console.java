import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Stands in for the console programs of a release that was published without them. Run from its
 * source: "java -cp LIBS Console.java write SERVERS TOPIC CODEC" takes lines of key, tab, value from
 * standard input; "... read SERVERS TOPIC COUNT" prints such lines.
 */
public class Console {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[1]);
        if (arguments[0].equals("write")) {
            write(properties, arguments[2], arguments[3]);
        } else {
            read(properties, arguments[2], Integer.parseInt(arguments[3]));
        }
    }

    static void write(Properties properties, String topic, String codec) throws Exception {
        properties.put("compression.type", codec);
        properties.put("linger.ms", "20");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        StringSerializer serializer = new StringSerializer();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, serializer, serializer)) {
            List<java.util.concurrent.Future<?>> sent = new java.util.ArrayList<>();
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] pair = line.split("\t", 2);
                sent.add(producer.send(new ProducerRecord<>(topic, pair[0], pair[1])));
            }
            for (java.util.concurrent.Future<?> one : sent) {
                one.get();
            }
        }
    }

    static void read(Properties properties, String topic, int count) {
        StringDeserializer deserializer = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(properties, deserializer, deserializer)) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream()
                .map(found -> new TopicPartition(topic, found.partition()))
                .collect(Collectors.toList());
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long end = System.currentTimeMillis() + 60000;
            for (int seen = 0; seen < count && System.currentTimeMillis() < end; ) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println(record.key() + "\t" + record.value());
                    seen++;
                }
            }
        }
    }
}
